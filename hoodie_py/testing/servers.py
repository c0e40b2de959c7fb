"""A local S3 server for tests: moto's, on a free port of 127.0.0.1."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from hoodie_py.errors import UnsupportedFeatureError

_KEY, _SECRET, _REGION = "local-s3-key", "local-s3-secret", "us-east-1"


@dataclass(frozen=True, slots=True)
class LocalS3:
    """A running S3 server with one bucket.

    Args:
        uri: the bucket, as ``s3://name``.
        endpoint_url: address of the server.
        storage_options: options for ``HoodieTable.open``, s3fs and fsspec.
        env: the same options as environment variables, for other programs.

    Examples:
        >>> s3.uri, s3.bucket
        ('s3://lake', 'lake')
        >>> HoodieTable.create(f"{s3.uri}/trips", trips.schema, record_key="id", storage_options=s3.storage_options).uri
        's3://lake/trips'
    """

    uri: str
    endpoint_url: str
    storage_options: Mapping[str, Any] = field(repr=False)
    env: Mapping[str, str] = field(repr=False)

    @property
    def bucket(self) -> str:
        """Name of the bucket."""
        return self.uri.removeprefix("s3://")

    def spark_conf(self) -> dict[str, str]:
        """Return the same options as settings of a Spark session, for Hadoop's S3A file system."""
        settings = {
            "access.key": _KEY,
            "secret.key": _SECRET,
            "endpoint": self.endpoint_url,
            "endpoint.region": _REGION,
            "path.style.access": "true",
            "connection.ssl.enabled": "false",
        }
        return {f"spark.hadoop.fs.s3a.{name}": value for name, value in settings.items()}


@contextmanager
def local_s3(bucket: str = "lake") -> Iterator[LocalS3]:
    """Run an S3 server on a free port of 127.0.0.1 during the block, with its objects in memory.

    Servers that run at the same time in one process share their objects, so give their buckets different names. The
    environment is not changed. At the end the server's thread and the bucket are gone.

    Args:
        bucket: name of the bucket that the server begins with.

    Raises:
        UnsupportedFeatureError: the server's package is not installed.

    Examples:
        >>> with local_s3(bucket="media") as server:
        ...     table = HoodieTable.create(
        ...         f"{server.uri}/t", trips.schema, record_key="id", storage_options=server.storage_options
        ...     )
        >>> table.uri
        's3://media/t'
    """
    try:
        from moto.server import ThreadedMotoServer
    except ImportError as error:
        raise UnsupportedFeatureError(
            "A local S3 server needs a package that is not installed.", hint="pip install 'hoodie_py[testing]'"
        ) from error
    with _silence_logger("werkzeug"):
        server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
        try:
            host, port = server.get_host_and_port()
            endpoint = f"http://{host}:{port}"
            with _make_bucket(endpoint, bucket):
                yield _describe_server(endpoint, bucket)
        finally:
            server.stop()
            server._server.server_close()  # noqa: SLF001 - stop() leaves the socket open


def _describe_server(endpoint: str, bucket: str) -> LocalS3:
    return LocalS3(
        uri=f"s3://{bucket}",
        endpoint_url=endpoint,
        storage_options={
            "key": _KEY,
            "secret": _SECRET,
            "endpoint_url": endpoint,
            "client_kwargs": {"region_name": _REGION},
        },
        env={
            "AWS_ACCESS_KEY_ID": _KEY,
            "AWS_SECRET_ACCESS_KEY": _SECRET,
            "AWS_REGION": _REGION,
            "AWS_DEFAULT_REGION": _REGION,
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ENDPOINT_URL_S3": endpoint,
            "AWS_ALLOW_HTTP": "true",
        },
    )


@contextmanager
def _make_bucket(endpoint: str, name: str) -> Iterator[None]:
    """Create a bucket, and remove it with its objects at the end, because the server's memory outlives the server."""
    import boto3  # comes with the server

    session = boto3.session.Session(_KEY, _SECRET, region_name=_REGION)
    service = session.resource("s3", endpoint_url=endpoint)
    bucket = service.create_bucket(Bucket=name)
    try:
        yield
    finally:
        if name in [each.name for each in service.buckets.all()]:
            bucket.object_versions.delete()
            bucket.delete()
        service.meta.client.close()


@contextmanager
def _silence_logger(logger_name: str) -> Iterator[None]:
    """Keep a logger from logging every request."""
    logger = logging.getLogger(logger_name)
    before = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(before)


def make_server_fixture() -> Any:
    """Return the pytest fixture ``local_s3_server``: one server for all tests of a session."""
    import pytest

    @pytest.fixture(scope="session")
    def local_s3_server() -> Iterator[LocalS3]:
        """An S3 server for the whole session."""
        with local_s3() as s3:
            yield s3

    return local_s3_server
