"""Avro containers of the timeline: commits, plans and results of table services.

The first byte chooses the parser; the rest is the file. With the high bit set, the rest is instead the binary form of
the record under the schema of a real file, which the container is then made of, so that flips reach the record.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache

from hoodie_py.errors import HoodieError
from hoodie_py.formats.avro.container import is_container, read_single
from hoodie_py.formats.timeline import plans, replace_plan, savepoints
from hoodie_py.formats.timeline.commit_metadata import CommitMetadata
from tests.formats.log_writer import varint
from tests.fuzz.parsers.commit_json import escapes
from tests.fuzz.seeds import all_files, is_instant

Reader = Callable[[bytes], object]
READERS: tuple[tuple[str, Reader], ...] = (
    ("commit", CommitMetadata.from_bytes),
    ("compaction.requested", plans.CompactionPlan.from_bytes),
    ("replacecommit.requested", replace_plan.RequestedReplace.from_bytes),
    ("clustering.requested", replace_plan.RequestedReplace.from_bytes),
    ("clean", plans.CleanMetadata.from_bytes),
    ("clean.requested", plans.CleanPlan.from_bytes),
    ("rollback", plans.RollbackMetadata.from_bytes),
    ("rollback.requested", plans.RollbackPlan.from_bytes),
    ("restore", savepoints.RestoreMetadata.from_bytes),
    ("savepoint", savepoints.SavepointMetadata.from_bytes),
)
RECORD = 0x80
SYNC = b"0123456789abcdef"


def _number(path: str) -> int | None:
    kind = path.rpartition("/")[2].partition(".")[2]
    aliases = {"deltacommit": "commit", "replacecommit": "commit", "logcompaction.requested": "compaction.requested"}
    kind = aliases.get(kind, kind)
    return next((number for number, (name, _) in enumerate(READERS) if name == kind), None)


@cache
def _real() -> dict[int, list[bytes]]:
    found: dict[int, list[bytes]] = {}
    for _, path, data in all_files(is_instant, 30_000):
        number = _number(path)
        if number is not None and is_container(data):
            found.setdefault(number, []).append(data)
    return {number: sorted(set(datas), key=len)[:4] for number, datas in found.items()}


def header_and_body(data: bytes) -> tuple[bytes, bytes]:
    """Split a container of one block and no codec behind its header: the header with the sync marker, the record."""
    sync = data[-16:]
    header = data[: data.index(sync) + 16]
    at = len(header) + 1  # a count of one
    size = shift = 0
    while True:
        byte = data[at]
        at += 1
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return header, data[at : at + (size >> 1)]


@cache
def _header(number: int) -> bytes | None:
    real = _real().get(number)
    return header_and_body(real[0])[0] if real and b"deflate" not in real[0][:300] else None


def seeds() -> list[bytes]:
    """Real files and their records."""
    found = []
    for number, datas in _real().items():
        found += [bytes([number]) + data for data in datas]
        if _header(number) is not None:
            found += [bytes([number | RECORD]) + header_and_body(data)[1] for data in datas]
    return found


def parse(data: bytes) -> None:
    """Read a file as what its first byte says."""
    number = data[0] % len(READERS) if data else 0
    body = data[1:]
    if data and data[0] & RECORD:
        number = (data[0] & 0x7F) % len(READERS)
        header = _header(number)
        if header is not None:
            body = header + varint(1) + varint(len(body)) + body + header[-16:]
    with suppress(HoodieError):
        read_single(body)
    with suppress(HoodieError):
        _check(READERS[number][1](body))


def _check(found: object) -> None:
    match found:
        case CommitMetadata():
            assert not any(map(escapes, found.write_stats))
        case plans.CompactionPlan():
            assert not any(escapes(each.partition_path) for each in found.operations)
            assert all("/" not in name for each in found.operations for name in each.delta_files)
        case plans.CleanPlan():
            assert not any(map(escapes, found.files))
            assert all("/" not in name for names in found.files.values() for name in names)
            assert not any(map(escapes, found.partitions_to_delete))
        case replace_plan.RequestedReplace():
            assert not any(escapes(partition) for partition, _ in found.iterate_file_groups())
