#!/usr/bin/env bash
# The whole story: files land on S3, Spark upserts and compacts them into a table, readers agree with the events.
#
#   docker/smoke.sh            against the services of compose.yaml, which it starts and stops
#   docker/smoke.sh --java     with a table of Java Hudi's beside
#   docker/smoke.sh --plain    as processes of this machine: AWS_*, LANDING and TABLE say where; PYTHON, SPARK_SUBMIT with what
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

plain=no java=no
for argument in "$@"; do
  case $argument in
    --plain) plain=yes ;;
    --java) java=yes ;;
    *) echo "unknown argument: $argument" >&2; exit 2 ;;
  esac
done

if [ "$plain" = yes ]; then
  [ "$java" = no ] || { echo "--java needs the services" >&2; exit 2; }
  programs=$here/../integration/pipeline
  python=${PYTHON:-python3} submit=${SPARK_SUBMIT:-spark-submit}
  inside() { "$@"; }
else
  [ -f "$here/.env" ] || cp "$here/.env.example" "$here/.env"
  compose() { docker compose --project-directory "$here" --file "$here/compose.yaml" "$@"; }
  trap 'compose --profile java down --volumes' EXIT
  compose up --build --detach spark
  programs=/opt/pipeline
  python=python submit=spark-submit
  # Values of .env, as the container has them
  LANDING=$(compose exec -T spark printenv LANDING)
  TABLE=$(compose exec -T spark printenv TABLE)
  AWS_ENDPOINT_URL=$(compose exec -T spark printenv AWS_ENDPOINT_URL)
  inside() { compose exec -T spark "$@"; }
fi

where=(--landing "$LANDING" --table "$TABLE" --endpoint-url "$AWS_ENDPOINT_URL")
say() { printf '\n== %s\n' "$*"; }

say "Files land on S3"
inside "$python" "$programs/landing.py" --to "$LANDING" --endpoint-url "$AWS_ENDPOINT_URL"

say "Spark upserts, reads, compacts, reads again, cleans"
inside "$submit" --master 'local[2]' --conf spark.ui.enabled=false --conf spark.sql.shuffle.partitions=2 \
  "$programs/orders.py" "${where[@]}"

say "Readers without Spark agree with the events"
inside "$python" "$programs/check.py" "${where[@]}"

if [ "$java" = yes ]; then
  say "Java Hudi writes a table; hoodie_py reads it, compacts it, and reads it again"
  compose --profile java run --build --rm java
  rows() {
    inside hoodie read s3://lake/java_orders --columns order_id,status,updated_at --format csv \
      --endpoint-url "$AWS_ENDPOINT_URL" | sort
  }
  before=$(rows)
  echo "$before"
  inside hoodie compact s3://lake/java_orders --endpoint-url "$AWS_ENDPOINT_URL"
  [ "$before" = "$(rows)" ] || { echo "other rows after the compaction" >&2; exit 1; }
fi

say "All is well"
