"""Every metadata file of every reference table parses; damaged ones are refused with our own errors or read."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import HoodieError
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.names import parse_base_file_name, parse_log_file_name, split_partition_path
from hoodie_py.formats.timeline.archive import (
    parse_archive_file_name,
    parse_archived_log,
    parse_history_file_name,
    parse_history_manifest,
    parse_history_parquet,
    parse_history_version,
    parse_manifest_name,
)
from hoodie_py.formats.timeline.commit_metadata import CommitMetadata
from hoodie_py.formats.timeline.instants import parse_instant_file
from hoodie_py.formats.timeline.plans import CleanMetadata, CleanPlan, CompactionPlan, RollbackMetadata, RollbackPlan
from hoodie_py.formats.timeline.replace_plan import RequestedReplace
from hoodie_py.formats.timeline.savepoints import RestoreMetadata, SavepointMetadata
from tests.corpus import corpus_names, load_case
from tests.formats.zipped_tables import MetaFile, meta_files

PARSERS: dict[tuple[str, str], Callable[[bytes], Any]] = {
    ("compaction", "requested"): CompactionPlan.from_bytes,
    ("logcompaction", "requested"): CompactionPlan.from_bytes,
    ("replacecommit", "requested"): RequestedReplace.from_bytes,
    ("clustering", "requested"): RequestedReplace.from_bytes,
    ("clean", "requested"): CleanPlan.from_bytes,
    ("clean", "completed"): CleanMetadata.from_bytes,
    ("rollback", "requested"): RollbackPlan.from_bytes,
    ("rollback", "completed"): RollbackMetadata.from_bytes,
    ("restore", "completed"): RestoreMetadata.from_bytes,
    ("savepoint", "completed"): SavepointMetadata.from_bytes,
}
for _action in ("commit", "deltacommit", "replacecommit"):
    for _state in ("requested", "inflight", "completed"):
        PARSERS.setdefault((_action, _state), CommitMetadata.from_bytes)


def parser_of(file: MetaFile) -> Callable[[bytes], Any] | None:
    if file.name == "hoodie.properties":
        return TableConfig.from_bytes
    if file.folder.endswith("/history") or file.folder.endswith("/archived"):
        by_name: list[tuple[object, Callable[[bytes], Any]]] = [
            (parse_archive_file_name(file.name), parse_archived_log),
            (parse_manifest_name(file.name), parse_history_manifest),
            (parse_history_file_name(file.name), parse_history_parquet),
            (file.name == "_version_" or None, parse_history_version),
        ]
        return next((parse for found, parse in by_name if found is not None), None)
    instant = parse_instant_file(file.name, 2 if file.folder == ".hoodie/timeline" else 1)
    return PARSERS.get((instant.instant.action, instant.instant.state)) if instant else None


@pytest.mark.parametrize("case", corpus_names())
def test_every_metadata_file_parses(case: str) -> None:
    parsed = [(file, parse(file.data)) for file in meta_files(case) if (parse := parser_of(file)) is not None]
    config = next(value for file, value in parsed if isinstance(value, TableConfig) and not file.is_metadata_table)
    commits = [(file, value) for file, value in parsed if isinstance(value, CommitMetadata)]
    assert len(commits) >= len(load_case(case).get("commits", ()))
    for file, commit in commits:
        for stat in commit.iterate_stats():
            if not stat.path:
                continue  # an inflight commit counts rows it has no files for yet
            name = stat.file_name or ""
            known = parse_log_file_name(name) or parse_base_file_name(name)
            assert known is not None, stat.path
            assert known.file_id == stat.file_id
            if not file.is_metadata_table:
                assert split_partition_path(stat.partition_path, config.partition_fields) is not None


@cache
def seeds() -> tuple[tuple[str, Callable[[bytes], Any], bytes], ...]:
    """One file of each kind, with its parser."""
    found: dict[tuple[object, ...], tuple[str, Callable[[bytes], Any], bytes]] = {}
    for case in corpus_names():
        for file in meta_files(case):
            parse = parser_of(file)
            if parse is None or not file.data or len(file.data) > 60_000:
                continue
            kind = (parse, file.data[:1])
            if kind not in found or len(file.data) < len(found[kind][2]):
                found[kind] = (file.path, parse, file.data)
    return tuple(found.values())


def damaged(data: bytes, rng: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5, 20))):
        at = rng.randrange(len(out) + 1)
        kind = rng.randrange(5)
        if kind <= 1 and at < len(out):
            out[at] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
        elif kind == 2:
            del out[at : at + rng.randrange(40)]
        elif kind == 3:
            out[at:at] = rng.randbytes(rng.randrange(12))
        else:
            out[at : at + 10] = b"\xff" * 9 + b"\x01"
    return bytes(out[: rng.randrange(len(out) + 1)] if rng.random() < 0.1 else out)


@given(st.integers(0, 2**32))
def test_damaged_files_are_refused_or_read_but_never_break_out(seed: int) -> None:
    rng = random.Random(seed)
    for path, parse, data in seeds():
        started = time.process_time()
        with contextlib.suppress(HoodieError):
            parse(damaged(data, rng))
        assert time.process_time() - started < 10, path


def test_every_kind_of_metadata_file_takes_part() -> None:
    assert {parse for _, parse, _ in seeds()} >= {TableConfig.from_bytes, CommitMetadata.from_bytes, parse_archived_log}
    assert len(seeds()) >= 12
