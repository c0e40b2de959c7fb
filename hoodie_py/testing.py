"""What tests of one's own need: a local S3 server.

    with local_s3() as s3:
        table = HoodieTable.open(f"{s3.uri}/trips", s3.storage_options)

pytest is imported only where a fixture is asked for: ``from hoodie_py.testing import s3`` in a conftest.py gives the fixture ``s3``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import hoodie_storage

from hoodie_py.errors import UnsupportedFeatureError

__all__ = ["LocalS3", "local_s3"]

_KEY = "testing"
_REGION = "us-east-1"


@dataclass(frozen=True, slots=True)
class LocalS3:
    """A running S3 server with one bucket.

    Args:
        uri: the bucket, as ``s3://name``.
        endpoint_url: where the server listens.
        storage_options: what ``HoodieTable.open`` takes to reach it.
        env: the same as environment variables, for other programs.
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
        """Return the same as settings of a Spark session, for Hadoop's S3A file system."""
        prefix = "spark.hadoop.fs.s3a."
        return {
            f"{prefix}access.key": self.env["AWS_ACCESS_KEY_ID"],
            f"{prefix}secret.key": self.env["AWS_SECRET_ACCESS_KEY"],
            f"{prefix}endpoint": self.endpoint_url,
            f"{prefix}endpoint.region": _REGION,
            f"{prefix}path.style.access": "true",
            f"{prefix}connection.ssl.enabled": "false",
        }


@contextmanager
def local_s3(bucket: str = "lake") -> Iterator[LocalS3]:
    """Run an S3 server on a free port of 127.0.0.1 for as long as the block lasts; its objects are held in memory.

    Objects of several servers in one process are kept apart by their bucket names only. Nothing is changed in the
    environment, and no thread is left behind.

    Args:
        bucket: name of the bucket that is there from the start.

    Raises:
        UnsupportedFeatureError: the server's package is not installed.
    """
    try:
        from moto.server import ThreadedMotoServer
    except ImportError as error:
        raise UnsupportedFeatureError(
            "a local S3 server needs a package that is not installed", hint="pip install 'hoodie_py[testing]'"
        ) from error
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield _with_bucket(f"http://{host}:{port}", bucket)
    finally:
        server.stop()
