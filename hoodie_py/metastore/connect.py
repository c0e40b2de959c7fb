"""The supported kinds of catalogs, and how to connect to each."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.metastore.entry import Metastore
from hoodie_py.options import sync as options

KINDS = ("hive", "glue")
# Catalogs that people ask for, and why they are not supported
_REFUSED = {
    "unity": "Unity Catalog has no format for Hudi tables, and Hudi's own tools sync with none.",
    "polaris": "Polaris knows Hudi tables as generic tables only, which its Spark client makes; Hudi has no sync.",
    "rest": "An Iceberg REST catalog has Iceberg tables only.",
    "iceberg": "An Iceberg REST catalog has Iceberg tables only.",
    "datahub": "DataHub is told of tables by Java's DataHubSyncTool only.",
    "bigquery": "BigQuery is told of tables by Java's BigQuerySyncTool only.",
}


def connect(kind: str, uri: str | None = None, given: Mapping[str, Any] | None = None) -> Metastore:
    """Connect to a catalog.

    Args:
        kind: "hive" or "glue".
        uri: address of a Hive Metastore; for Glue only if it is not AWS itself.
        given: options of the client (Glue: ``region_name``, ...), and Hudi's options of the catalog.

    Raises:
        InvalidQueryError: there is no such catalog or option, or the client's package is missing.
        UnsupportedFeatureError: the catalog is not supported; the message has the reason.
        StorageError: it cannot be reached.
    """
    clients = {name: value for name, value in (given or {}).items() if not name.startswith("hoodie.")}
    hudi = {name: str(value) for name, value in (given or {}).items() if name.startswith("hoodie.")}
    if kind in KINDS:
        check_package(kind)
    if kind == "hive":
        from hoodie_py.metastore.hive import HiveMetastore

        if clients:
            raise InvalidQueryError(
                f"A Hive Metastore has no option {min(clients)[:200]!r}.", hint="It has an address only."
            )
        return HiveMetastore(uri or options.URIS.read(hudi) or "")
    if kind == "glue":
        from hoodie_py.metastore.glue import GlueCatalog

        return GlueCatalog({**clients, **({"endpoint_url": uri} if uri else {})}, hudi)
    if kind in _REFUSED:
        raise UnsupportedFeatureError(_REFUSED[kind], hint=f"There are {' and '.join(KINDS)}.")
    raise InvalidQueryError(f"There is no kind of catalog {kind[:200]!r}.", hint=f"There are {' and '.join(KINDS)}.")


def connect_for_write(kind: str, given: Mapping[str, str]) -> Metastore:
    """Connect to the catalog that the options of a write name. Raises what ``connect`` raises."""
    uri = (options.URIS.read(given) or options.DEFAULT_URI) if kind == "hive" else None
    return connect(kind, uri, {str(each): given[each] for each in options.OPTIONS if each in given})


def check_package(kind: str) -> None:
    """Check that the client package for a kind of catalog is installed.

    Raises:
        InvalidQueryError: it is not.
    """
    package, extra = {"hive": ("thriftpy2", "hive"), "glue": ("boto3", "glue")}[kind]
    if find_spec(package) is None:
        raise InvalidQueryError(
            f"A catalog of the kind {kind} needs the package {package}.", hint=f"Run pip install 'hoodie_py[{extra}]'."
        )
