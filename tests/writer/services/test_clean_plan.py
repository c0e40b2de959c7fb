from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import InvalidQueryError, InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.names import parse_log_file_name
from hoodie_py.formats.timeline.plans import CleanMetadata, CleanPlan
from hoodie_py.reader.file_slice import BaseFile, FileSlice, LogFile
from hoodie_py.table.view.file_groups import FileGroup
from hoodie_py.writer.services.clean_plan import (
    CleanSettings,
    Retention,
    SliceDecision,
    check_plan,
    decide_slices,
    make_plan,
)
from tests.writer.clean_tables import Names, at

BY_VERSIONS = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}


def planned(names: Names, commits: int | None = 1, **options: str) -> CleanPlan | None:
    return make_plan(names.snapshot(), CleanSettings.of(options, commits)).plan


@pytest.fixture(params=[9, 6])
def names(tmp_path: Path, request: pytest.FixtureRequest) -> Names:
    """A group with base files at 1, 3 and 5 and log files in between, on either layout."""
    made = Names(tmp_path / "t", request.param)
    for number in (1, 3, 5):
        made.base("f-0", number)
        made.done(number, "commit" if number > 1 else "deltacommit")
        made.log("f-0", number + 1 if request.param == 9 else number)
        made.done(number + 1)
    return made


def test_a_plan_for_each_number_of_commits(names: Names) -> None:
    second = names.log("f-0", 2 if names.version == 9 else 1)
    plan = planned(names, 2)
    assert plan is not None
    assert (plan.earliest_instant_to_retain, plan.earliest_action) == (at(5), "commit")
    assert plan.last_completed_commit_timestamp == at(6)
    assert plan.files == {"p": (f"f-0_0-0-0_{at(1)}.parquet", Path(second).name)}
    assert plan.policy == "KEEP_LATEST_COMMITS"
    for commits, slices in ((1, 2), (3, 1), (4, 0), (6, 0), (7, 0)):
        found = make_plan(names.snapshot(), CleanSettings.of({}, commits))
        assert len(found.report.removed) == slices
        assert (found.plan is None) is (slices == 0)


def test_the_report_tells_why(names: Names) -> None:
    report = make_plan(names.snapshot(), CleanSettings.of({}, 2)).report
    assert "would remove 1 of 3 file slices (2 files, 8 bytes)" in str(report)
    assert f"retain what commit {at(5)} and later ones read" in str(report)
    assert f"- p/f-0 of {at(1)}: it is older than what is retained; 2 files, 8 bytes" in repr(report)
    page = report._repr_html_()
    assert "goes: it is older than what is retained" in page
    assert f"stays: commit {at(5)} still reads it" in page


def test_the_report_shows_twenty_slices(tmp_path: Path) -> None:
    names = Names(tmp_path / "t")
    for number in range(1, 26):
        names.base("f-0", number)
        names.done(number, "commit")
    lines = repr(make_plan(names.snapshot(), CleanSettings.of({}, 1)).report).splitlines()
    assert (len(lines), lines[-1]) == (22, "  ... and 5 more")


def test_file_versions(names: Names) -> None:
    plan = planned(names, None, **BY_VERSIONS)
    assert plan is not None
    assert plan.earliest_instant_to_retain is None
    assert len(plan.files["p"]) == 4
    assert planned(names, None, **{**BY_VERSIONS, "hoodie.clean.fileversions.retained": "3"}) is None


def test_a_pending_write_holds_the_earliest_commit_back(names: Names) -> None:
    names.pending(4, "deltacommit")
    for path in names.timeline.glob(f"{at(4)}*.deltacommit"):
        path.unlink()
    assert planned(names) is None  # back to commit 3, which still reads 1
    report = make_plan(names.snapshot(), CleanSettings.of({}, 1)).report
    assert report.earliest == at(3)


def test_a_pending_write_before_everything(tmp_path: Path) -> None:
    names = Names(tmp_path / "t")
    names.pending(1)
    for number in (2, 3, 4):
        names.base("f-0", number)
        names.done(number, "commit")
    assert make_plan(names.snapshot(), CleanSettings.of({}, 1)).report.earliest is None


def test_what_a_pending_compaction_names_stays(names: Names) -> None:
    names.planned(7, "f-0", names.base("f-0", 5), names.log("f-0", 6 if names.version == 9 else 5))
    names.done(8)
    for options in ({}, BY_VERSIONS):
        fates = make_plan(names.snapshot(), CleanSettings.of(options, 1)).report.slices
        assert [each.removed for each in fates] == [True, True, False, False]
        assert fates[2].reason == f"compaction {at(7)} is pending"


def test_what_a_pending_clustering_names_stays(names: Names) -> None:
    """Its slice is not the newest one: a write since has started another slice."""
    names.clustering(7, "f-0", base=names.base("f-0", 3), logs=(names.log("f-0", 4 if names.version == 9 else 3),))
    names.done(8)
    for options in ({}, BY_VERSIONS):
        fates = make_plan(names.snapshot(), CleanSettings.of(options, 1)).report.slices
        assert [each.removed for each in fates] == [True, False, False]
        action = "clustering" if names.version == 9 else "replacecommit"
        assert fates[1].reason == f"{action} {at(7)} is pending"


def test_what_a_savepoint_names_stays(names: Names) -> None:
    names.saved(1, names.base("f-0", 1))
    for options in ({}, BY_VERSIONS):
        plan = planned(names, 1, **options)
        assert plan is not None
        assert plan.extra_metadata["savepointed_timestamps"] == at(1)
        assert plan.files["p"][0] == f"f-0_0-0-0_{at(3)}.parquet"
        assert len(plan.files["p"]) == 2


def test_replaced_groups(tmp_path: Path) -> None:
    names = Names(tmp_path / "t")
    names.base("old-0", 1)
    names.done(1, "deltacommit")
    names.base("new-0", 2)
    names.done(2, "replacecommit", b'{"partitionToReplaceFileIds": {"p": ["old-0"]}, "partitionToWriteStats": {}}')
    names.done(3)
    names.done(4)
    plan = planned(names, 1)
    assert plan is not None
    assert plan.files == {"p": (f"old-0_0-0-0_{at(1)}.parquet",)}
    assert planned(names, 3) is None


def test_an_earlier_clean_is_not_taken_back(tmp_path: Path) -> None:
    from hoodie_py.formats.timeline.writers import write_clean_metadata

    names = Names(tmp_path / "t")
    for number in (1, 2, 3, 4):
        names.base("f-0", number)
        names.done(number, "commit")
    names.done(5, "clean", write_clean_metadata(CleanMetadata(at(5), 0, at(4), at(4))))
    assert make_plan(names.snapshot(), CleanSettings.of({}, 2)).report.earliest == at(4)


@pytest.mark.parametrize("name", ["hoodie.clean.trigger.max.commits", "hoodie.clean.max.commits"])
def test_a_clean_waits_for_as_many_commits_as_asked(tmp_path: Path, name: str) -> None:
    from hoodie_py.formats.timeline.writers import write_clean_metadata

    names = Names(tmp_path / "t")
    for number in (1, 2, 3, 4):
        names.base("f-0", number)
        names.done(number, "commit")
    assert planned(names, 1, **{name: "4"}) is not None
    found = make_plan(names.snapshot(), CleanSettings.of({name: "5"}, 1))
    assert found.plan is None
    assert "is not due: 4 commits have completed since the last clean, fewer than 5" in str(found.report)
    names.done(5, "clean", write_clean_metadata(CleanMetadata(at(5), 0, at(2), at(4))))
    for number in (6, 7):
        names.base("f-0", number)
        names.done(number, "commit")
    assert planned(names, 1, **{name: "2"}) is not None
    assert planned(names, 1, **{name: "3"}) is None


def test_one_clean_takes_at_most_as_many_commits_as_asked(tmp_path: Path) -> None:
    from hoodie_py.formats.timeline.writers import write_clean_metadata

    names = Names(tmp_path / "t")
    for number in (1, 2, 3, 4, 6, 7):
        names.base("f-0", number)
        names.done(number, "commit")
    most = {"hoodie.clean.max.commits.to.clean": "2"}
    assert make_plan(names.snapshot(), CleanSettings.of(most, 1)).report.earliest == at(7)  # there was no clean
    names.done(5, "clean", write_clean_metadata(CleanMetadata(at(5), 0, at(2), at(4))))
    assert make_plan(names.snapshot(), CleanSettings.of(most, 1)).report.earliest == at(4)
    for most_commits, earliest in ((3, 6), (4, 7), (5, 7)):  # the commits from the last clean's up to 7 are 2, 3, 4, 6
        more = {"hoodie.clean.max.commits.to.clean": str(most_commits)}
        assert make_plan(names.snapshot(), CleanSettings.of(more, 1)).report.earliest == at(earliest)
    assert make_plan(names.snapshot(), CleanSettings.of({}, 1)).report.earliest == at(7)


def test_nothing_committed(tmp_path: Path) -> None:
    assert planned(Names(tmp_path / "t")) is None


def test_files_of_unfinished_writes_stay(names: Names) -> None:
    orphans = {names.base("f-0", 8), names.base("g-0", 8), names.log("g-0", 8)}
    names.pending(8)
    for options in ({}, BY_VERSIONS):
        plan = planned(names, 1, **options)
        assert plan is not None
        assert {Path(path).name for path in orphans}.isdisjoint(plan.files["p"])


@pytest.mark.parametrize(
    ("options", "commits", "error"),
    [
        ({"hoodie.clean.policy": "KEEP_LATEST_BY_HOURS"}, None, UnsupportedFeatureError),
        ({"hoodie.cleaner.policy": "nonsense"}, None, InvalidQueryError),
        ({"hoodie.clean.trigger.strategy": "HOURS"}, None, InvalidQueryError),
        ({"hoodie.clean.commits.retained": "x"}, None, InvalidQueryError),
        ({"hoodie.clean.commits.retained": "0"}, None, InvalidQueryError),
        ({}, 0, InvalidQueryError),
        ({"hoodie.cleaner.fileversions.retained": "-1"}, None, InvalidQueryError),
    ],
)
def test_bad_settings(options: dict[str, str], commits: int | None, error: type[Exception]) -> None:
    with pytest.raises(error):
        CleanSettings.of(options, commits)


def test_settings_by_older_names() -> None:
    assert CleanSettings.of({"hoodie.cleaner.commits.retained": "4"}).commits == 4
    assert CleanSettings.of({"hoodie.cleaner.commits.retained": "4"}, 2).commits == 2
    assert CleanSettings.of({}) == CleanSettings("KEEP_LATEST_COMMITS", 10, 3)


def test_a_pending_restore_is_refused(names: Names) -> None:
    names.pending(9, "restore")
    with pytest.raises(UnsupportedFeatureError, match="restore"):
        planned(names)


def test_a_plan_that_removes_what_is_needed_is_refused(names: Names) -> None:
    snapshot = names.snapshot()
    for path in (names.base("f-0", 5), names.log("f-0", 6 if names.version == 9 else 5)):
        with pytest.raises(InvalidTableError, match="the newest file slice"):
            check_plan(snapshot, CleanPlan(files={"p": (Path(path).name,)}))
    check_plan(snapshot, CleanPlan(files={"p": (f"f-0_0-0-0_{at(1)}.parquet", "gone.parquet"), "no/such": ("x",)}))
    with pytest.raises(UnsupportedFeatureError, match="removes partitions"):
        check_plan(snapshot, CleanPlan(partitions_to_delete=("p",)))
    names.saved(1, names.base("f-0", 1))
    with pytest.raises(InvalidTableError, match="savepoint"):
        check_plan(names.snapshot(), CleanPlan(files={"p": (f"f-0_0-0-0_{at(1)}.parquet",)}))


def test_a_saved_plan_that_removes_what_another_plan_names_is_refused(names: Names) -> None:
    """As after a plan that was saved meanwhile by a writer with another lock."""
    old = names.base("f-0", 1)
    log = names.log("f-0", 2 if names.version == 9 else 1)
    plan = CleanPlan(files={"p": (Path(old).name,)})
    check_plan(names.snapshot(), plan)
    names.planned(7, "f-0", old, log)
    for path in (old, log):
        with pytest.raises(InvalidTableError, match=f"compaction {at(7)} is pending"):
            check_plan(names.snapshot(), CleanPlan(files={"p": (Path(path).name,)}))


def test_a_saved_plan_that_removes_what_a_pending_clustering_names_is_refused(names: Names) -> None:
    old = names.base("f-0", 1)
    log = names.log("f-0", 2 if names.version == 9 else 1)
    names.clustering(7, "f-0", base=old, logs=(log,))
    for path in (old, log):
        with pytest.raises(InvalidTableError, match=f"{at(7)} is pending"):
            check_plan(names.snapshot(), CleanPlan(files={"p": (Path(path).name,)}))


def test_a_savepoint_that_is_being_made_holds_the_earliest_commit_back(names: Names) -> None:
    assert make_plan(names.snapshot(), CleanSettings.of({}, 1)).report.earliest == at(6)
    names.pending(3, "savepoint", "inflight")
    report = make_plan(names.snapshot(), CleanSettings.of({}, 1)).report
    assert report.earliest == at(2)
    assert report.removed == ()


def test_a_pending_clean_or_rollback_holds_nothing_back(names: Names) -> None:
    for action in ("clean", "rollback", "indexing"):
        names.pending(2, action, "requested")
    assert make_plan(names.snapshot(), CleanSettings.of({}, 1)).report.earliest == at(6)


def base(number: int, token: str = "0-0-0") -> BaseFile:
    return BaseFile(f"p/f-0_{token}_{at(number)}.parquet", 100, at(number), "f-0")


def log(number: int) -> LogFile:
    name = parse_log_file_name(f".f-0_{at(number)}.log.1_0-0-0")
    assert name is not None
    return LogFile(f"p/{name.name}", 10, name)


def changes(number: int, token: str = "0-0-0") -> LogFile:
    name = parse_log_file_name(f".f-0_{at(number)}.log.1_{token}.cdc")
    assert name is not None
    return LogFile(f"p/{name.name}", 10, name)


def group_of(*slices: FileSlice, extra: tuple[BaseFile, ...] = (), captured: tuple[LogFile, ...] = ()) -> FileGroup:
    bases = [each.base_file for each in slices if each.base_file is not None]
    return FileGroup("p", "f-0", (*bases, *extra), tuple(log for each in slices for log in each.log_files), captured)


def slice_of(number: int, *, has_base: bool = True, logs: tuple[int, ...] = ()) -> FileSlice:
    return FileSlice("p", "f-0", at(number), base(number) if has_base else None, tuple(log(each) for each in logs))


def removed(found: list[SliceDecision]) -> list[str]:
    return [each.instant for each in found if each.removed]


def reasons(found: list[SliceDecision]) -> list[str]:
    return [each.reason for each in found]


FIVE = [slice_of(number, logs=(number,)) for number in (1, 2, 3, 4, 5)]


def test_commits_before_the_one_that_the_earliest_reads_go() -> None:
    found = decide_slices(group_of(*FIVE), FIVE, Retention(earliest=at(4)))
    assert removed(found) == [at(1), at(2)]
    assert reasons(found)[2:] == [
        f"commit {at(4)} still reads it",
        f"it is not older than commit {at(4)}",
        "it is the newest",
    ]
    assert found[0].files == ((f"f-0_0-0-0_{at(1)}.parquet", 100), (f".f-0_{at(1)}.log.1_0-0-0", 10))
    assert found[0].size == 110


def test_the_newest_stays_however_old_it_is() -> None:
    assert removed(decide_slices(group_of(*FIVE), FIVE, Retention(earliest=at(99)))) == [at(1), at(2), at(3), at(4)]
    assert removed(decide_slices(group_of(FIVE[0]), FIVE[:1], Retention(earliest=at(99)))) == []
    assert decide_slices(group_of(), [], Retention(earliest=at(1))) == []


def test_versions() -> None:
    for versions, gone in ((1, 4), (2, 3), (5, 0), (9, 0)):
        assert len(removed(decide_slices(group_of(*FIVE), FIVE, Retention(versions=versions)))) == gone


def test_what_a_plan_or_savepoint_names_stays() -> None:
    for names in (
        {"planned": {base(1).path: "compaction X is pending"}},
        {"saved": {log(1).path: "savepoint X names it"}},
    ):
        found = decide_slices(group_of(*FIVE), FIVE, Retention(earliest=at(5), **names))  # type: ignore[arg-type]
        assert removed(found) == [at(2), at(3)]
        assert reasons(found)[0] == next(iter(next(iter(names.values())).values()))


def test_a_planned_slice_is_one_of_the_versions() -> None:
    slices = [*FIVE[:3], slice_of(4, has_base=False, logs=(4,))]
    planned = {base(3).path: "compaction is pending"}
    for versions, gone in ((1, [at(1), at(2)]), (2, [at(1)]), (3, [])):
        assert removed(decide_slices(group_of(*slices), slices, Retention(versions=versions, planned=planned))) == gone


def test_a_slice_without_a_newer_base_file_stays() -> None:
    slices = [slice_of(1), slice_of(2, has_base=False, logs=(2,)), slice_of(3, has_base=False, logs=(3,))]
    found = decide_slices(group_of(*slices), slices, Retention(earliest=at(9)))
    assert removed(found) == []
    assert reasons(found)[0] == "there is no newer base file"


def test_base_files_of_repeated_tasks_go_with_their_slice() -> None:
    twin = base(1, token="7-7-7")
    found = decide_slices(group_of(*FIVE, extra=(twin,)), FIVE, Retention(earliest=at(5)))
    assert twin.name in [name for name, _ in found[0].files]


def test_change_data_goes_with_the_base_file_of_its_instant() -> None:
    captured = (changes(1), changes(1, "7-7-7"), changes(4), changes(9))
    found = decide_slices(group_of(*FIVE, captured=captured), FIVE, Retention(earliest=at(5)))
    assert removed(found) == [at(1), at(2), at(3)]
    files = [name for each in found if each.removed for name, _ in each.files]
    assert [name for name in files if name.endswith(".cdc")] == [changes(1).name.name, changes(1, "7-7-7").name.name]
    logs_only = [slice_of(1, has_base=False, logs=(1,)), slice_of(2)]
    found = decide_slices(group_of(*logs_only, captured=(changes(1),)), logs_only, Retention(earliest=at(9)))
    assert [name for name, _ in found[0].files] == [log(1).name.name], "no base file, no change data"


def test_replaced_groups_go_whole() -> None:
    two = FIVE[:2]
    assert removed(decide_slices(group_of(*two), two, Retention(earliest=at(9)), at(8))) == [at(1), at(2)]
    assert removed(decide_slices(group_of(*two), two, Retention(versions=3), at(8))) == [at(1), at(2)]
    assert removed(decide_slices(group_of(*two), two, Retention(earliest=at(8)), at(8))) == []
    saved = {base(2).path: "savepoint"}
    assert removed(decide_slices(group_of(*two), two, Retention(earliest=at(9), saved=saved), at(8))) == [at(1)]


@given(
    numbers=st.lists(st.tuples(st.integers(1, 30), st.booleans()), min_size=1, max_size=8, unique_by=lambda x: x[0]),
    earliest=st.none() | st.integers(0, 35),
    versions=st.integers(1, 4),
    named=st.sets(st.integers(1, 30)),
)
def test_no_query_of_retained_commits_misses_a_file(
    numbers: list[tuple[int, bool]], earliest: int | None, versions: int, named: set[int]
) -> None:
    slices = [slice_of(number, has_base=has_base, logs=(number,)) for number, has_base in sorted(numbers)]
    names = {log(number).path: "X is pending" for number in named}
    retention = Retention(None if earliest is None else at(earliest), versions, planned=names)
    gone = set(removed(decide_slices(group_of(*slices), slices, retention)))
    instants = [each.base_instant for each in slices]
    assert instants[-1] not in gone
    assert gone.isdisjoint(at(number) for number in named)
    newest_base = max((each.base_instant for each in slices if each.base_file), default="")
    assert all(instant < newest_base for instant in gone)
    if earliest is not None:
        for query in range(earliest, 36):
            read = max((instant for instant in instants if instant <= at(query)), default=None)
            assert read not in gone
