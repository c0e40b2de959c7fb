"""What must hold of a table whatever happened to it."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Collection
from typing import Any

import fastavro
import pyarrow as pa

from hoodie_py import TableFiles
from hoodie_py.formats.config.hashing_metadata import CONSISTENT_FOLDER, FIRST_INSTANT, parse_instant
from hoodie_py.formats.hfile.bootstrap_index import read_hfile
from hoodie_py.formats.log.framing import LogBlock, iterate_blocks
from hoodie_py.formats.names import parse_base_file_name, parse_log_file_name
from hoodie_py.formats.timeline.instants import DELTA_COMMIT, Instant
from hoodie_py.formats.timeline.timeline import Timeline
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.timeline.loader import load_config, load_timeline
from hoodie_py.writer.index.bucket import find_hash_ranges
from hoodie_py.writer.index.table_index import find_bucket_engine
from hoodie_py.writer.index_settings import CONSISTENT
from hoodie_py.writer.transaction.hash_ranges import load_hash_ranges
from integration.crash.stores import open_table

METADATA = ".hoodie/metadata"
SCRATCH = ".tmp"  # end of the name of a file that a killed process left half written; nobody reads it
_EVERY = "__all_partitions__"


def rows(files: TableFiles, query_type: str = "snapshot", as_of: str | None = None, *, timeless: bool = False) -> str:
    """Return a digest of all rows, in any order, the file's name aside; ``timeless``: and the commit's time."""
    found = open_table(files).scan(query_type=query_type, as_of=as_of).to_arrow()
    aside = ["_hoodie_file_name", *(["_hoodie_commit_time"] if timeless else [])]
    found = found.drop_columns([name for name in aside if name in found.schema.names])
    text = "\n".join([str(found.num_rows), *sorted(map(repr, found.to_pylist()))])
    return hashlib.sha256(text.encode()).hexdigest()


def is_data_file(path: str) -> bool:
    """Whether a path is that of a base or log file of the table itself."""
    name = path.rpartition("/")[2]
    named = parse_base_file_name(name) if not name.startswith(".") else parse_log_file_name(name)
    return named is not None and not path.startswith(".hoodie/")


def orphans(snapshot: Snapshot, paths: Collection[str]) -> list[str]:
    """Return base files of completed instants that their commit does not name, which a listing reader would see, and
    such change-data files.
    """
    named = {
        instant.request_time: set(named_files(snapshot, instant))
        for instant in snapshot.timeline.list_completed_writes()
    }
    found = []
    for path in filter(is_data_file, paths):
        instant = _base_instant(path)
        if instant is not None and path not in named.get(instant, {path}):
            found.append(path)
    return found


def metadata_faults(snapshot: Snapshot, sizes: dict[str, int], since: str) -> list[str]:
    """Compare what the metadata table was told since an instant with the timeline and the files that are there."""
    if not snapshot.config.metadata_partitions:
        return []
    place = snapshot.files.sub(METADATA)
    told = {each.request_time for each in list_told(place)}
    done = {each.request_time for each in snapshot.timeline if each.is_completed and each.request_time > since}
    only = {each for each in told - done if each > since}
    faults = [f"the metadata table has {each}, the timeline has not" for each in only]
    removed = {path for instant in done for path, _, gone in _records(place, instant) if gone}
    for instant in sorted(done):
        records = _records(place, instant) if instant in told else []
        added = {path: size for path, size, gone in records if not gone}
        written = {path: size for path, size in sizes.items() if is_data_file(path) and _base_instant(path) == instant}
        expected = {path: size for path, size in added.items() if path not in removed}
        if expected != {path: size for path, size in written.items() if path not in removed}:
            faults.append(f"the metadata table says {added} of {instant}, there are {written}")
    faults += [f"{path} is there, the metadata table says it is not" for path in removed if path in sizes]
    return faults


def astray(files: TableFiles) -> list[str]:
    """Return the keys that lie elsewhere than the ranges in force say, and ranges of instants that are gone."""
    table = open_table(files)
    snapshot = table._snapshot
    if find_bucket_engine(snapshot) != CONSISTENT:
        return []
    found = []
    for each in table.file_slices():
        ranges = load_hash_ranges(snapshot, each.partition_path)
        assert ranges is not None
        rows = table.scan(columns=["_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name"]).to_arrow()
        for key, partition, name in zip(*(column.to_pylist() for column in rows.columns), strict=True):
            if partition == each.partition_path:
                [at] = find_hash_ranges(pa.chunked_array([[key]]), (), ranges.bounds).tolist()
                found += [] if name.startswith(ranges.file_ids[at]) else [f"{key} is in {name}"]
        folder = f"{CONSISTENT_FOLDER}/{each.partition_path}"
        known = {instant.request_time for instant in table.timeline} | {FIRST_INSTANT}
        names = [info.name for info in files.list(folder) if not info.name.endswith(SCRATCH)]
        strange = {parse_instant(name.lstrip(".")) for name in names} - known  # a checksum begins with a dot
        found += [f"ranges of {instant}, which is gone" for instant in strange]
    return found


def list_told(files: TableFiles) -> Timeline:
    """Return the completed delta commits of a metadata table; its other instants are its own services'."""
    return load_timeline(files, load_config(files)).select_completed().select_actions(DELTA_COMMIT)


def named_files(snapshot: Snapshot, instant: Instant) -> dict[str, int]:
    """Return paths and sizes of the files that a completed write names."""
    found: dict[str, int] = {}
    for stat in snapshot.timeline.read_metadata(instant).iterate_stats():
        found |= {stat.path or "": stat.file_size_in_bytes, **stat.cdc_stats}
    return found


def _base_instant(path: str) -> str | None:
    name = path.rpartition("/")[2]
    found = parse_log_file_name(name) if name.endswith(".cdc") else parse_base_file_name(name)
    return None if found is None else found.instant


def _records(files: TableFiles, instant: str) -> list[tuple[str, int, bool]]:
    """Return path, size and whether it is gone of each file that the metadata table was told of by an instant."""
    found: list[tuple[str, int, bool]] = []
    for info in files.list("files"):
        if ".log." not in info.name or info.name.endswith(".crc"):
            continue
        for block in iterate_blocks(files.read(info.path)):
            if not isinstance(block, LogBlock) or block.instant_time != instant or not block.schema_text:
                continue
            schema = fastavro.parse_schema(json.loads(block.schema_text))
            for key, value in read_hfile(block.content):
                record: Any = fastavro.schemaless_reader(io.BytesIO(value), schema, None)
                partition = key.decode()
                if partition == _EVERY:
                    continue
                folder = "" if partition == "." else f"{partition}/"
                told = record["filesystemMetadata"].items()
                found += [(f"{folder}{name}", each["size"], each["isDeleted"]) for name, each in told]
    return found
