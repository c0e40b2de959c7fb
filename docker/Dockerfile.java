# A writer that is Java Hudi itself: Spark 3.5 with Hudi's bundle and Hadoop's S3 file system.
FROM python:3.11-slim-bookworm
ARG HUDI=1.2.0
ARG HADOOP=3.3.4
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps \
 && rm -rf /var/lib/apt/lists/* \
 && pip install --no-cache-dir "pyspark==3.5.*"
RUN useradd --uid 1000 --create-home hoodie
USER 1000
WORKDIR /home/hoodie
# Fetches the jars now, and not when a container starts.
ENV PACKAGES=org.apache.hudi:hudi-spark3.5-bundle_2.12:${HUDI},org.apache.hadoop:hadoop-aws:${HADOOP}
RUN printf 'from pyspark.sql import SparkSession\nSparkSession.builder.getOrCreate().stop()\n' > warm.py \
 && spark-submit --master 'local[1]' --packages "${PACKAGES}" warm.py \
 && rm warm.py
COPY integration/pipeline/java_writer.py /opt/java_writer.py
ENV PYSPARK_PYTHON=python3 PYTHONUNBUFFERED=1
ENTRYPOINT ["sh", "-c", "exec spark-submit --master 'local[2]' --packages \"${PACKAGES}\" /opt/java_writer.py \"$@\"", "java_writer"]
CMD ["--help"]
