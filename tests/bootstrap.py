"""Bootstrapped tables for tests: their index, and tables of the collection whose source folder has moved."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hoodie_py.formats.avro.container import read_single, write_single
from hoodie_py.formats.hfile.bootstrap_index import (
    FILE_IDS_PATH,
    PARTITIONS_PATH,
    make_file_key,
    make_partition_key,
    read_hfile,
)
from tests.hfiles import write_hfile

Sources = Mapping[str, Mapping[str, tuple[str | None, int | None]]]  # partition -> file id -> URI and size

_TEXT = ["null", "string"]
_PATH = {"type": "record", "name": "HoodiePath", "fields": [{"name": "uri", "type": _TEXT}]}
_STATUS = {
    "type": "record",
    "name": "HoodieFileStatus",
    "fields": [{"name": "path", "type": ["null", _PATH]}, {"name": "length", "type": ["null", "long"]}],
}
_PARTITION = {
    "type": "record",
    "name": "HoodieBootstrapPartitionMetadata",
    "namespace": "org.apache.hudi.avro.model",
    "fields": [{"name": "fileIdToBootstrapFile", "type": ["null", {"type": "map", "values": _STATUS}]}],
}
_FILE = {
    "type": "record",
    "name": "HoodieBootstrapFilePartitionInfo",
    "namespace": "org.apache.hudi.avro.model",
    "fields": [{"name": "bootstrapFileStatus", "type": ["null", _STATUS]}],
}


def make_partition_value(sources: Mapping[str, tuple[str | None, int | None]] | None) -> bytes:
    """A value of the index by partition; None for a record without sources."""
    found = None if sources is None else {file_id: _make_status(*each) for file_id, each in sources.items()}
    return write_single({"fileIdToBootstrapFile": found}, _PARTITION)


def make_file_value(uri: str | None, size: int | None) -> bytes:
    """A value of the index by file id."""
    return write_single({"bootstrapFileStatus": _make_status(uri, size)}, _FILE)


def make_index(sources: Sources) -> dict[str, bytes]:
    """The files of a bootstrap index by path."""
    by_partition = [(make_partition_key(path), make_partition_value(inside)) for path, inside in sources.items()]
    by_file = [
        (make_file_key(path, file_id), make_file_value(*each))
        for path, inside in sources.items()
        for file_id, each in inside.items()
    ]
    return {
        PARTITIONS_PATH: write_hfile(by_partition, schema="", created_ms=0),
        FILE_IDS_PATH: write_hfile(by_file, schema="", created_ms=0),
    }


def _make_status(uri: str | None, size: int | None) -> dict[str, Any]:
    return {"path": {"uri": uri}, "length": size}


def move_sources(table: Path, old: str, new: str) -> None:
    """Change the source folder that a table names, as if it had been bootstrapped there."""
    properties = table / ".hoodie" / "hoodie.properties"
    properties.write_text(properties.read_text().replace(old, new))
    if not (table / PARTITIONS_PATH).is_file():
        return
    moved: dict[str, dict[str, tuple[str | None, int | None]]] = {}
    for key, value in read_hfile((table / PARTITIONS_PATH).read_bytes()):
        sources = read_single(value)["fileIdToBootstrapFile"]
        moved[key.decode().removeprefix("part=")] = {
            file_id: (status["path"]["uri"].replace(old, new), status["length"]) for file_id, status in sources.items()
        }
    for path, data in make_index(moved).items():
        (table / path).write_bytes(data)
