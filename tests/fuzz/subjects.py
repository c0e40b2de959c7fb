"""Real files to damage: what each says when it is whole, and where a changed byte may change the answer in silence.

``read`` gives a value that compares equal for the same answer, and counts what it had to skip. Hudi's formats carry no
checksums: a flipped bit inside a value, a key or a header text is another value, for Java as well. What frames the
values must be found out: the magic, sizes and counts of log blocks.
"""

from __future__ import annotations

import math
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from hoodie_py import HoodieTable
from hoodie_py.errors import HoodieWarning
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.deletes.decoder import decode_deletes
from hoodie_py.formats.log.blocks import decode_block_positions, decode_delete_block, decode_positions, decode_records
from hoodie_py.formats.log.framing import MAGIC, BlockType, CorruptBlock, LogBlock, iterate_blocks
from hoodie_py.formats.timeline import archive, plans
from hoodie_py.formats.timeline.commit_metadata import CommitMetadata
from tests.formats.log_writer import delete_content, surrounded
from tests.fuzz.parsers import avro_container, deletes, kryo
from tests.fuzz.seeds import all_files, files, is_instant, is_log

Answer = tuple[Any, int]


@dataclass(frozen=True, slots=True)
class Subject:
    """A file to damage.

    Attributes:
        name: what it is.
        data: the whole file.
        read: its answer and how many stretches were skipped; raises HoodieError.
        framing: bytes of which a flip must be found out; all others may change the answer.
        ends: lengths to which it may be cut without being found out: Java then has the same answer.
        thin: how many cases there are for one that is tried, where each takes long.
    """

    name: str
    data: bytes
    read: Callable[[bytes], Answer] = field(repr=False)
    framing: frozenset[int] = frozenset()
    ends: frozenset[int] = frozenset()
    thin: int = 1


def same(one: Any, other: Any) -> bool:
    """Whether two answers are equal, with NaN equal to itself."""
    if isinstance(one, pa.RecordBatch):
        return isinstance(other, pa.RecordBatch) and (
            one.equals(other) or (one.schema.equals(other.schema) and repr(one.to_pylist()) == repr(other.to_pylist()))
        )
    if isinstance(one, (list, tuple)):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other):
        return True
    return bool(one == other)


def read_log(data: bytes) -> Answer:
    """Decode every block of a log file with all that hangs on it."""
    blocks: list[Any] = []
    skipped = 0
    for block in iterate_blocks(
        surrounded([data], b"\xff")[0]
    ):  # as a reader has it: in Arrow's memory, with room behind
        if isinstance(block, CorruptBlock):
            skipped += 1
        else:
            blocks.append(_decoded(block))
    return blocks, skipped


def _decoded(block: LogBlock) -> tuple[Any, ...]:
    content: Any = None
    count = 0
    if block.is_data:
        content = decode_records(block)
        count = content.num_rows
    elif block.type is BlockType.DELETE:
        content = _deleted(decode_delete_block(block))
        count = len(content[0])
    else:
        content = block.is_rollback
    positions = decode_block_positions(block, count)
    return block.type, dict(block.headers), content, None if positions is None else positions.tolist()


def _deleted(found: Any) -> tuple[Any, ...]:
    return found.keys.to_pylist(), found.kinds.tolist(), list(found.values)


def _framing(data: bytes) -> frozenset[int]:
    """Bytes of a log file that frame its blocks, but for the numbers of types and headers."""
    found: set[int] = set()
    for block in iterate_blocks(data):
        assert isinstance(block, LogBlock)
        at = block.offset
        found.update(range(at, at + 18))  # magic, size, version
        found.update(range(at + 22, at + 26))  # header count
        at += 26
        for text in block.headers.values():
            found.update(range(at + 4, at + 8))
            at += 8 + len(text.encode())
        found.update(range(at, at + 8))
        end = block.offset + block.size
        found.update(range(end - 12, end))  # footer count, reverse pointer
    return frozenset(found)


def _ends(data: bytes) -> frozenset[int]:
    """Lengths at which a log file ends between two blocks; fewer bytes than a magic at the end are not looked at."""
    offsets = [block.offset for block in iterate_blocks(data)] + [len(data)]
    return frozenset(offset + more for offset in offsets for more in range(len(MAGIC) + 1))


def _log(name: str, data: bytes) -> Subject:
    data = _head(data, _LONGEST_LOG)
    return Subject(name, data, read_log, _framing(data), _ends(data))


def _head(data: bytes, most: int) -> bytes:
    """The first blocks of a log file, as many as fit into some bytes, and one at least."""
    ends = [block.offset + block.size for block in iterate_blocks(data) if isinstance(block, LogBlock)]
    return data[: max((end for end in ends if end <= most), default=ends[0])]


_LONGEST_LOG = 6000

# table, kinds of blocks that its log file must have
_LOGS = (
    ("basic_mor_v6_part", {BlockType.AVRO_DATA}),
    ("basic_mor_v8_nonpart", {BlockType.AVRO_DATA}),
    ("basic_mor_v9_part", {BlockType.AVRO_DATA}),
    ("blocks_hfile_mor_v8", {BlockType.HFILE_DATA}),
    ("blocks_parquet_mor_v8", {BlockType.PARQUET_DATA}),
    ("commit_time_deletes_mor_v8", {BlockType.DELETE}),
    ("event_time_deletes_mor_v6", {BlockType.DELETE}),
    ("is_deleted_column_mor_v9", {BlockType.AVRO_DATA, BlockType.DELETE}),
    ("many_row_groups_mor_v9", {BlockType.AVRO_DATA}),
    ("two_ordering_fields_mor_v9", {BlockType.AVRO_DATA}),
    ("rollback_completed_mor_v6", {BlockType.COMMAND}),
    ("many_blocks_one_file_mor_v6", {BlockType.AVRO_DATA}),
    ("merge_into_partial_mor_v9", {BlockType.AVRO_DATA}),
    ("log_compaction_mor_v9", {BlockType.AVRO_DATA, BlockType.DELETE}),
)


def _logs() -> Iterator[Subject]:
    for case, kinds in _LOGS:
        logs = sorted((data for path, data in files(case).items() if is_log(path)), key=len)
        fitting = [data for data in logs if kinds <= {getattr(block, "type", None) for block in iterate_blocks(data)}]
        if not fitting:
            raise LookupError(f"no log file with {kinds} in {case}")
        yield _log(f"log/{case}", fitting[0])


def _metadata_files() -> Iterator[Subject]:
    """The shortest file of each kind and layout in the active timeline."""
    shortest: dict[tuple[str, bool], tuple[str, bytes]] = {}
    for case, path, data in all_files(is_instant):
        kind = path.rpartition("/")[2].partition(".")[2]
        key = kind, data[:1] == b"{"
        if data and (key not in shortest or len(data) < len(shortest[key][1])):
            shortest[key] = f"timeline/{case}/{path.rpartition('/')[2]}", data
    for (kind, _), (name, data) in sorted(shortest.items()):
        read = _READERS.get(kind)
        if read is not None:
            yield Subject(name, data, read, ends=frozenset({0}))


def _plain(parse: Callable[[bytes], Any]) -> Callable[[bytes], Answer]:
    return lambda data: (parse(data), 0)


_READERS: dict[str, Callable[[bytes], Answer]] = {
    **{kind: _plain(read) for kind, read in avro_container.READERS},
    "deltacommit": _plain(CommitMetadata.from_bytes),
    "replacecommit": _plain(CommitMetadata.from_bytes),
    "inflight": _plain(CommitMetadata.from_bytes),
    "deltacommit.inflight": _plain(CommitMetadata.from_bytes),
    "logcompaction.requested": _plain(plans.CompactionPlan.from_bytes),
}


def _archives() -> Iterator[Subject]:
    for _, _, data in sorted(all_files(lambda path: ".commits_.archive" in path), key=lambda found: len(found[2]))[:1]:
        head = _head(data, _LONGEST_LOG)
        yield Subject("archive/log", head, _plain(archive.parse_archived_log), ends=_ends(head))
    histories = all_files(lambda path: "/history/" in path and path.endswith(".parquet"))
    for _, _, data in sorted(histories, key=lambda found: len(found[2]))[:1]:
        yield Subject("archive/history", data, _plain(archive.parse_history_parquet))
    for _, _, data in all_files(lambda path: "/history/manifest_" in path):
        yield Subject("archive/manifest", data, _plain(archive.parse_history_manifest))
        break


def _small_parts() -> Iterator[Subject]:
    blocks = deletes.seeds()
    contents = blocks[:3] + blocks[-len(deletes.SAMPLES) - 4 :] + [delete_content(2, each) for each in kryo.seeds()]
    for number, content in enumerate(contents):
        yield Subject(f"deletes/{number:02}", content, lambda data: (_deleted(decode_deletes(data)), 0))
    texts = {
        block.record_positions
        for _, _, data in all_files(is_log)
        for block in iterate_blocks(data)
        if isinstance(block, LogBlock) and block.record_positions
    }
    for number, text in enumerate(sorted(texts, key=len)[:: max(1, len(texts) // 6)]):
        yield Subject(
            f"positions/{number}", text.encode(), lambda data: (decode_positions(data.decode("latin-1")).tolist(), 0)
        )
    for case, path in (
        ("basic_mor_v6_part", ".hoodie/hoodie.properties"),
        ("basic_mor_v9_part", ".hoodie/hoodie.properties"),
    ):
        data = files(case)[path]
        # Lines carry no checksum but that of the name: cutting some off leaves another configuration, for Java too.
        yield Subject(f"properties/{case}", data, _plain(TableConfig.from_bytes), ends=frozenset(range(len(data))))


def _whole_tables() -> Iterator[Subject]:
    """Files of whole tables, which are then read through the front door: anything but an untyped failure will do."""
    for case in ("basic_mor_v6_part", "basic_mor_v9_part"):
        chosen: dict[str, str] = {}
        for path in sorted(files(case), key=_last_digits):
            kind = _kind(path)
            if kind is not None:
                chosen[kind] = path
        for kind, path in chosen.items():
            data = files(case)[path]
            read = _TableReader(case, path)
            yield Subject(
                f"table/{case}/{kind}", data, read, ends=frozenset(range(len(data))), thin=1 + len(data) // 60
            )


def _last_digits(path: str) -> str:
    """The instant in the name of a base file, which comes last in it, so that the newest one is taken."""
    return max(re.findall(r"[0-9]{17}", path), default="")


def _kind(path: str) -> str | None:
    if is_log(path):
        return "log"
    if path.endswith(".parquet"):
        return "base"
    if path.endswith("hoodie.properties"):
        return "properties"
    if is_instant(path) and path.endswith(".deltacommit"):
        return "deltacommit"
    return None


class _TableReader:
    """Reads a whole table of which one file is given; the others are unpacked once."""

    def __init__(self, case: str, path: str) -> None:
        self._case = case
        self._path = path
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __call__(self, data: bytes) -> Answer:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="hoodie-fuzz-")
            for path, content in files(self._case).items():
                place = Path(self._folder.name) / path
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content)
        (Path(self._folder.name) / self._path).write_bytes(data)
        with warnings.catch_warnings(record=True) as reported:
            warnings.simplefilter("always")
            table = HoodieTable.open(self._folder.name)
            rows = table.scan().to_arrow()
        return sorted(map(repr, rows.to_pylist())), sum(issubclass(each.category, HoodieWarning) for each in reported)


@cache
def subjects() -> dict[str, Subject]:
    """All subjects by name."""
    found = (*_logs(), *_metadata_files(), *_archives(), *_small_parts(), *_whole_tables())
    return {subject.name: subject for subject in found}
