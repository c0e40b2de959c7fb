from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.formats.names import parse_log_file_name
from hoodie_py.reader.file_slice import BaseFile, FileSlice, LogFile
from hoodie_py.table.view.file_groups import FileGroup
from hoodie_py.writer.clean.rules import Retention, SliceDecision, decide_slices
from tests.writer.clean_tables import at


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
