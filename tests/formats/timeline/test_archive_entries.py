"""Entries of archive files: Java's own entries come out of the files that Java archived."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie_py.errors import CorruptFileError, HoodieError, UnsupportedFeatureError
from hoodie_py.formats.log.framing import LogBlock, iterate_blocks
from hoodie_py.formats.timeline.archive import parse_archive_file_name, parse_archived_log
from hoodie_py.formats.timeline.archive_entries import (
    encode_archive_log,
    make_archive_file_name,
    make_entry,
    needs_content,
)
from hoodie_py.formats.timeline.commit_metadata import CommitMetadata, WriteStat
from hoodie_py.formats.timeline.instants import Instant
from hoodie_py.formats.timeline.plans import CleanMetadata, CleanPlan, CompactionOperation, CompactionPlan
from hoodie_py.formats.timeline.writers import (
    write_clean_metadata,
    write_clean_plan,
    write_commit_metadata,
    write_compaction_plan,
    write_requested_replace,
)

TIME = "20260101000000000"
COMMIT = CommitMetadata(
    operation_type="UPSERT",
    extra_metadata={"schema": "{}"},
    write_stats={"p": (WriteStat("g", "p/g_1_2.parquet", num_writes=3, cdc_stats={"p/x.cdc": 4}),)},
)
PLAN = CompactionPlan((CompactionOperation(TIME, "g", "p", None, ("x.log",), {"TOTAL_LOG_FILES_SIZE": 1}),))
CLEAN_PLAN = CleanPlan(earliest_instant_to_retain=TIME, earliest_action="commit", policy="KEEP_LATEST_COMMITS")
CONTENTS = {
    ("commit", "requested"): (b"", None),
    ("commit", "inflight"): (write_commit_metadata(COMMIT, 1), "hoodieCommitMetadata"),
    ("commit", "completed"): (write_commit_metadata(COMMIT, 1), "hoodieCommitMetadata"),
    ("deltacommit", "completed"): (write_commit_metadata(COMMIT, 2), "hoodieCommitMetadata"),
    ("replacecommit", "requested"): (write_requested_replace(), "hoodieRequestedReplaceMetadata"),
    ("replacecommit", "inflight"): (write_commit_metadata(COMMIT, 1), "HoodieInflightReplaceMetadata"),
    ("replacecommit", "completed"): (
        write_commit_metadata(COMMIT, 1, replace=True),
        "hoodieReplaceCommitMetadata",
    ),
    ("compaction", "requested"): (write_compaction_plan(PLAN), "hoodieCompactionPlan"),
    ("compaction", "inflight"): (b"", None),
    ("clean", "requested"): (write_clean_plan(CLEAN_PLAN, "file:/t"), "hoodieCleanerPlan"),
    ("clean", "inflight"): (write_clean_plan(CLEAN_PLAN, "file:/t"), "hoodieCleanerPlan"),
    ("clean", "completed"): (write_clean_metadata(CleanMetadata(start_clean_time=TIME)), "hoodieCleanMetadata"),
    ("rollback", "requested"): (b"", None),
}


def state(action: str, name: str) -> Instant:
    return Instant(TIME, TIME if name == "completed" else None, action, name)


def records(data: bytes) -> list[int]:
    """How many entries each block has."""
    blocks = [each for each in iterate_blocks(data) if isinstance(each, LogBlock)]
    return [int.from_bytes(each.content[4:8], "big") for each in blocks]


def test_each_state_has_its_content_in_its_field() -> None:
    entries = []
    for (action, name), (content, field) in CONTENTS.items():
        instant = state(action, name)
        assert needs_content(instant) == (field is not None)
        entry = make_entry(instant, "20260101000000009", content)
        filled = {key for key, value in entry.items() if isinstance(value, dict)}
        assert filled == ({field} if field else set())
        assert (entry["actionType"], entry["actionState"]) == (action, name.upper())
        entries.append(entry)
    data = encode_archive_log(entries, 5)
    assert records(data) == [5, 5, 3]
    found = parse_archived_log(data)
    assert [each.action for each in found] == ["commit", "deltacommit", "replacecommit", "clean"]
    for each in found[:2]:
        assert each.parse_commit_metadata() == COMMIT


def test_fields_that_the_archive_does_not_have_are_left_out_and_missing_ones_have_their_defaults() -> None:
    content = json.dumps({"recordsStats": {"a": [1]}, "extraMetadata": {"schema": "{}", "none": None}}).encode()
    entry = make_entry(state("commit", "completed"), TIME, content)["hoodieCommitMetadata"]
    assert entry == {
        "partitionToWriteStats": None, "compacted": None, "extraMetadata": {"schema": "{}"}, "version": 1,
        "operationType": None,
    }  # fmt: skip


def test_an_empty_file_gives_an_entry_without_content() -> None:
    entry = make_entry(state("commit", "completed"), TIME, b"")
    assert entry["hoodieCommitMetadata"] is None
    [found] = parse_archived_log(encode_archive_log([entry], 10))
    assert not found.has_metadata


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"Obj\x01",
        b"[]",
        b'{"operationType": 5}',
        b'{"extraMetadata": []}',
        b'{"partitionToWriteStats": {"p": 1}}',
    ],
)
def test_damaged_content_is_an_error(content: bytes) -> None:
    with pytest.raises(CorruptFileError):
        make_entry(state("commit", "completed"), TIME, content)


def test_what_java_requires_must_be_there() -> None:
    with pytest.raises(UnsupportedFeatureError, match="startCleanTime"):
        make_entry(state("clean", "completed"), TIME, b'{"timeTakenInMillis": 1}')


ANY_JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["partitionToWriteStats", "extraMetadata", "p", "fileId", "version", "operationType"]),
            inner,
        )
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["partitionToWriteStats", "extraMetadata", "version", "compacted"]), ANY_JSON))
@settings(max_examples=60)
def test_any_json_gives_an_entry_that_can_be_read_or_an_error(content: dict[str, Any]) -> None:
    try:
        data = encode_archive_log([make_entry(state("commit", "completed"), TIME, json.dumps(content).encode())], 10)
    except HoodieError:
        return
    assert len(parse_archived_log(data)) == 1


def test_names() -> None:
    assert make_archive_file_name(12) == ".commits_.archive.12_1-0-1"
    assert parse_archive_file_name(make_archive_file_name(12)) == 12
