"""What is written reads back to an equal value, and a file of Java's, written again, is the same record."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import InvalidTableError
from hoodie_py.formats.avro.container import is_container
from hoodie_py.formats.timeline.commit_metadata import CommitMetadata, WriteStat
from hoodie_py.formats.timeline.plans import (
    CleanedPartition,
    CleanMetadata,
    CleanPlan,
    CompactionOperation,
    CompactionPlan,
    RollbackMetadata,
    RollbackPlan,
    RollbackRequest,
    RolledBackInstant,
    RolledBackPartition,
)
from hoodie_py.formats.timeline.writers import (
    write_clean_metadata,
    write_clean_plan,
    write_commit_metadata,
    write_compaction_plan,
    write_rollback_metadata,
    write_rollback_plan,
)
from tests.corpus import corpus_names
from tests.formats.zipped_tables import meta_files

LOCATION = "file:/data/trips"

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
names = st.from_regex(r"[a-z0-9][a-z0-9_.\-]{0,20}", fullmatch=True)
partitions = st.from_regex(r"([a-z0-9=\-]{1,5}(/[a-z0-9]{1,3})?)?", fullmatch=True)
longs = st.integers(0, (1 << 63) - 1)
ints = st.integers(0, (1 << 31) - 1)
text_maps = st.dictionaries(texts, texts, max_size=3)
size_maps = st.dictionaries(names, longs, max_size=3)
name_lists = st.lists(names, max_size=3).map(tuple)
by_partition = st.dictionaries(partitions, name_lists, max_size=3)


def test_every_kind_of_file_that_java_wrote_comes_back_the_same() -> None:
    seen = set()
    for file in (file for case in corpus_names() for file in meta_files(case)):
        for name, before, after in rewritten(file.data, file.name):
            seen.add(name)
            assert after == before, file.path
    assert seen >= {"JSON", "HoodieCommitMetadata", "HoodieCompactionPlan", "HoodieRollbackMetadata"}


def rewritten(data: bytes, name: str) -> Iterator[tuple[str, Any, Any]]:
    """The kind of record in a file, the record, and what reading and writing it made of it."""
    if is_container(data) and not name.endswith(".avro"):
        reader = fastavro.reader(io.BytesIO(data))
        schema: Any = reader.writer_schema
        kind = schema["name"].rsplit(".")[-1]
        if kind in WRITERS:
            parse, write = WRITERS[kind]
            value = parse(data)
            again = write(value)
            assert parse(again) == value
            yield kind, without_places(next(reader)), without_places(next(fastavro.reader(io.BytesIO(again))))
    elif data[:1] == b"{" and "commit" in name and "schemacommit" not in name:
        record = json.loads(data)
        commit = CommitMetadata.from_bytes(data)
        again = write_commit_metadata(commit, 1, replace="partitionToReplaceFileIds" in record)
        assert CommitMetadata.from_bytes(again) == commit
        yield "JSON", without_figures(record), without_figures(json.loads(again))


WRITERS: dict[str, tuple[Callable[[bytes], Any], Callable[[Any], bytes]]] = {
    "HoodieCommitMetadata": (CommitMetadata.from_bytes, lambda value: write_commit_metadata(value, 2)),
    "HoodieReplaceCommitMetadata": (
        CommitMetadata.from_bytes, lambda value: write_commit_metadata(value, 2, replace=True)
    ),
    "HoodieCompactionPlan": (CompactionPlan.from_bytes, write_compaction_plan),
    "HoodieCleanerPlan": (CleanPlan.from_bytes, lambda value: write_clean_plan(value, LOCATION)),
    "HoodieCleanMetadata": (CleanMetadata.from_bytes, write_clean_metadata),
    "HoodieRollbackPlan": (RollbackPlan.from_bytes, lambda value: write_rollback_plan(value, LOCATION)),
    "HoodieRollbackMetadata": (RollbackMetadata.from_bytes, lambda value: write_rollback_metadata(value, LOCATION)),
}  # fmt: skip


def without_places(value: Any) -> Any:
    """The record with file names in place of locations, since the reference tables were made elsewhere."""
    if isinstance(value, dict):
        kept = {without_places(key): without_places(item) for key, item in value.items()}
        if kept.get("missingSchedulePartitions", ...) in (None, []):  # 0.15 does not have the field
            del kept["missingSchedulePartitions"]
        return kept
    if isinstance(value, list):
        return [without_places(item) for item in value]
    absolute = isinstance(value, str) and (value.startswith(("file:/", "/")))
    return value.rsplit("/", 1)[-1] if absolute else value


FIGURES = {
    "totalValidLogBlocks", "totalLogBlocksSize", "totalLogBlocksScanTimeMs", "recordsStats",  # not read here
    "prevBaseFile", "numUpdates", "totalLogReadTimeMs",  # that 0.15 did not write
}  # fmt: skip


def without_figures(record: dict[str, Any]) -> dict[str, Any]:
    """JSON metadata without keys that some releases have and others do not, where they say nothing."""
    for stats in record["partitionToWriteStats"].values():
        for stat in stats:
            for key in [key for key in FIGURES & stat.keys() if not stat[key] or key == "recordsStats"]:
                del stat[key]
    return record


RUNTIME = {"total_scan_time": 1, "total_create_time": 2, "total_upsert_time": 3}


@st.composite
def stats(draw: st.DrawFn) -> WriteStat:
    partition = draw(partitions)
    numbers = {name: draw(longs) for name in ("num_writes", "num_inserts", "total_log_files", "file_size_in_bytes")}
    is_log = draw(st.booleans())
    return WriteStat(
        file_id=draw(names),
        path="/".join(part for part in (partition, draw(names)) if part),
        prev_commit=draw(st.none() | names),
        partition_path=partition,
        log_version=draw(ints) if is_log else None,
        log_offset=draw(longs) if is_log else None,
        base_file=draw(st.none() | names),
        log_files=draw(name_lists),
        cdc_stats=draw(size_maps),
        prev_base_file=draw(st.none() | names),
        min_event_time=draw(st.none() | longs),
        runtime_stats=draw(st.sampled_from([{}, RUNTIME])),
        **numbers,
    )  # fmt: skip


commits = st.builds(
    CommitMetadata,
    operation_type=st.sampled_from(["COMPACT", "UPSERT", "UNKNOWN"]),
    extra_metadata=text_maps,
    compacted=st.booleans(),
    write_stats=st.dictionaries(partitions, st.lists(stats(), max_size=2).map(tuple), max_size=2),
    replaced_file_ids=by_partition,
)


@given(commits, st.sampled_from([1, 2]), st.booleans())
def test_commits_read_back(commit: CommitMetadata, layout: int, replace: bool) -> None:
    data = write_commit_metadata(commit, layout, replace=replace)
    assert is_container(data) == (layout == 2)
    assert CommitMetadata.from_bytes(data) == commit


SIZE = {"TOTAL_LOG_FILES_SIZE": 1.5}
operations = st.builds(
    CompactionOperation,
    base_instant_time=st.none() | names,
    file_id=names,
    partition_path=partitions,
    data_file=st.none() | names,
    delta_files=name_lists,
    metrics=st.dictionaries(names, st.floats(0, 1e300), max_size=3).map(lambda some: some | SIZE),
    bootstrap_file=st.none() | names,
)  # fmt: skip
compactions = st.builds(
    CompactionPlan,
    operations=st.lists(operations, max_size=3).map(tuple),
    extra_metadata=text_maps,
    version=st.just(2),
    strategy=st.just("a.Strategy"),
    strategy_params=text_maps,
    preserve_hoodie_metadata=st.booleans(),
    missing_partitions=st.lists(partitions, max_size=3).map(tuple),
)


@given(compactions)
def test_compaction_plans_read_back(plan: CompactionPlan) -> None:
    assert CompactionPlan.from_bytes(write_compaction_plan(plan)) == plan


def test_a_compaction_plan_is_of_version_2_unless_it_says_otherwise() -> None:
    plan = CompactionPlan.from_bytes(write_compaction_plan(CompactionPlan()))
    assert (plan.version, plan.strategy) == (2, None)


cleans = st.builds(
    CleanPlan,
    earliest_instant_to_retain=st.just("20260101000000000"),
    policy=names,
    files=by_partition,
    partitions_to_delete=st.lists(partitions, max_size=3).map(tuple),
    earliest_action=names,
    last_completed_commit_timestamp=st.none() | names,
    extra_metadata=text_maps,
)
cleaned = st.builds(
    CleanMetadata,
    start_clean_time=names,
    total_files_deleted=ints,
    earliest_commit_to_retain=st.none() | names,
    last_completed_commit_timestamp=st.none() | names,
    partitions=st.dictionaries(
        partitions, st.builds(CleanedPartition, name_lists, name_lists, st.booleans(), names), max_size=3
    ),
    time_taken_ms=longs,
    extra_metadata=text_maps,
)


@given(cleans)
def test_clean_plans_read_back(plan: CleanPlan) -> None:
    assert CleanPlan.from_bytes(write_clean_plan(plan, LOCATION)) == plan


@given(cleaned)
def test_cleans_read_back(clean: CleanMetadata) -> None:
    assert CleanMetadata.from_bytes(write_clean_metadata(clean)) == clean


instants = st.builds(RolledBackInstant, names, names)
requests = st.builds(RollbackRequest, partitions, name_lists, names, names, size_maps)
rolled_back = st.builds(RolledBackPartition, name_lists, name_lists, size_maps, size_maps)


@given(st.builds(RollbackPlan, instants, st.lists(requests, max_size=3).map(tuple)))
def test_rollback_plans_read_back(plan: RollbackPlan) -> None:
    assert RollbackPlan.from_bytes(write_rollback_plan(plan, LOCATION)) == plan


rollbacks = st.builds(
    RollbackMetadata, names, ints, name_lists, st.lists(instants, max_size=3).map(tuple),
    st.dictionaries(partitions, rolled_back, max_size=3), longs,
)  # fmt: skip


@given(rollbacks)
def test_rollbacks_read_back(rollback: RollbackMetadata) -> None:
    assert RollbackMetadata.from_bytes(write_rollback_metadata(rollback, LOCATION)) == rollback


def record_of(data: bytes) -> Any:
    return next(fastavro.reader(io.BytesIO(data)))


@pytest.mark.parametrize("location", ["s3a://lake/trips", "s3a://lake/trips/"])
def test_plans_locate_files_below_the_table(location: str) -> None:
    plan = CleanPlan(policy="P", files={"p0/x": ("a",), "": ("b",)})
    files = record_of(write_clean_plan(plan, location))["filePathsToBeDeletedPerPartition"]
    assert files["p0/x"] == [{"filePath": "s3a://lake/trips/p0/x/a", "isBootstrapBaseFile": False}]
    assert files[""] == [{"filePath": "s3a://lake/trips/b", "isBootstrapBaseFile": False}]
    request = RollbackRequest("p0", ("a",), "f", "1", {".l": 7})
    (found,) = record_of(write_rollback_plan(RollbackPlan(RolledBackInstant("1", "commit"), (request,)), location))[
        "RollbackRequests"
    ]
    assert found["filesToBeDeleted"] == ["s3a://lake/trips/p0/a"]
    assert found["logBlocksToBeDeleted"] == {"s3a://lake/trips/p0/.l": 7}


GOOD = CompactionOperation("1", "f", "p", "b", ("l",), {"TOTAL_LOG_FILES_SIZE": 1.0})
INSTANT = RolledBackInstant("1", "commit")
BAD: list[Callable[[], bytes]] = [
    lambda: write_compaction_plan(CompactionPlan((CompactionOperation("1", "f", "p", "b", ("l",)),))),
    lambda: write_compaction_plan(CompactionPlan((CompactionOperation("1", "", "p", "b", (), GOOD.metrics),))),
    lambda: write_compaction_plan(CompactionPlan((CompactionOperation("1", "f", "../p", "b", (), GOOD.metrics),))),
    lambda: write_compaction_plan(CompactionPlan((CompactionOperation("1", "f", "p", "x/b", (), GOOD.metrics),))),
    lambda: write_compaction_plan(CompactionPlan((GOOD,), missing_partitions=("/p",))),
    lambda: write_commit_metadata(CommitMetadata(write_stats={"..": ()}), 2),
    lambda: write_commit_metadata(CommitMetadata(write_stats={"p": (WriteStat("f", "/p/x"),)}), 1),
    lambda: write_commit_metadata(CommitMetadata(replaced_file_ids={"/p": ()}), 2),
    lambda: write_clean_plan(CleanPlan(), LOCATION),
    lambda: write_clean_plan(CleanPlan("1", "P"), LOCATION),
    lambda: write_clean_plan(CleanPlan(policy="P", files={"../p": ("x",)}), LOCATION),
    lambda: write_clean_plan(CleanPlan(policy="P", files={"p": ("../x",)}), LOCATION),
    lambda: write_clean_metadata(CleanMetadata()),
    lambda: write_rollback_plan(RollbackPlan(), LOCATION),
    lambda: write_rollback_plan(RollbackPlan(INSTANT, (RollbackRequest("/p"),)), LOCATION),
    lambda: write_rollback_metadata(RollbackMetadata(), LOCATION),
]  # fmt: skip


@pytest.mark.parametrize("write", BAD)
def test_what_java_could_not_use_is_never_written(write: Callable[[], bytes]) -> None:
    with pytest.raises(InvalidTableError):
        write()
