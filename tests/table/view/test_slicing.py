"""Slicing rules on synthetic names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.files import FileInfo
from hoodie_py.reader.file_slice import BaseFile, FileSlice
from hoodie_py.table.view.file_groups import FileGroup, group_files
from hoodie_py.table.view.slicing import find_base_file, make_slice

FILE_ID = "aa-0"


def at(number: int) -> str:
    return f"202601010000{number:02d}000"


@dataclass
class FakeCommits:
    """Instants with completion times; a None completion is an unfinished commit."""

    completions: dict[str, str | None] = field(default_factory=dict)
    compaction: str | None = None
    logs_carry_base_instant: bool = False

    def is_committed(self, instant: str) -> bool:
        return self.completions.get(instant) is not None

    def find_completion_time(self, instant: str, beyond: str) -> str:
        return instant if self.logs_carry_base_instant else self.completions[instant] or instant

    def find_pending_compaction(self, key: tuple[str, str]) -> str | None:
        return self.compaction

    def pick_base_file(self, partition_path: str, candidates: Sequence[BaseFile]) -> BaseFile:
        return max(candidates, key=lambda file: file.path)


def base(instant: str, token: str = "0-1-1") -> str:
    return f"{FILE_ID}_{token}_{instant}.parquet"


def log(instant: str, version: int = 1) -> str:
    return f".{FILE_ID}_{instant}.log.{version}_0-1-1"


def group(*names: str) -> FileGroup:
    (only,) = group_files("p", [FileInfo(f"p/{name}", 1, False) for name in names])
    return only


def show(file_slice: FileSlice | None) -> tuple[str | None, list[tuple[str, int]]] | None:
    if file_slice is None:
        return None
    first = file_slice.base_file.instant if file_slice.base_file else None
    return first, [(each.name.instant, each.name.version) for each in file_slice.log_files]


def committed(*numbers: int) -> dict[str, str | None]:
    return {at(number): at(number + 1) for number in numbers}


def test_log_belongs_to_the_greatest_base_not_after_its_completion():
    commits = FakeCommits({at(1): at(2), at(3): at(9), at(5): at(6)})
    files = group(base(at(1)), log(at(3)), base(at(5)))
    assert show(make_slice(files, commits)) == (at(5), [(at(3), 1)])
    assert show(make_slice(files, commits, at(4))) == (at(1), [])


def test_log_completed_before_the_compaction_stays_below_it():
    commits = FakeCommits(committed(1, 3, 5))
    files = group(base(at(1)), log(at(3)), base(at(5)))
    assert show(make_slice(files, commits)) == (at(5), [])
    assert show(make_slice(files, commits, at(4))) == (at(1), [(at(3), 1)])


def test_version_6_log_belongs_to_the_base_it_names():
    commits = FakeCommits(committed(1, 3, 5), logs_carry_base_instant=True)
    files = group(base(at(1)), log(at(1), 2), log(at(1), 1), log(at(1), 10), base(at(5)), log(at(5)))
    assert show(make_slice(files, commits, at(4))) == (at(1), [(at(1), 1), (at(1), 2), (at(1), 10)])
    assert show(make_slice(files, commits)) == (at(5), [(at(5), 1)])


def test_version_6_log_of_another_instant_than_any_base_belongs_to_the_base_before():
    commits = FakeCommits(committed(1, 3, 5), logs_carry_base_instant=True)
    files = group(base(at(1)), log(at(3)), base(at(5)))
    assert show(make_slice(files, commits, at(4))) == (at(1), [(at(3), 1)])


def test_pending_compaction_is_read_with_the_slice_below():
    commits = FakeCommits({**committed(1, 3, 7), at(5): None}, compaction=at(5))
    files = group(base(at(1)), log(at(3)), base(at(5)), log(at(7)))
    assert show(make_slice(files, commits)) == (at(1), [(at(3), 1), (at(7), 1)])
    assert make_slice(files, commits).base_instant == at(1)
    assert show(make_slice(files, commits, at(6))) == (at(1), [(at(3), 1)])
    assert show(make_slice(files, commits, at(4))) == (at(1), [(at(3), 1)])


def test_version_6_pending_compaction():
    commits = FakeCommits({**committed(1, 3, 7), at(5): None}, compaction=at(5), logs_carry_base_instant=True)
    files = group(base(at(1)), log(at(1)), base(at(5)), log(at(5)))
    assert show(make_slice(files, commits)) == (at(1), [(at(1), 1), (at(5), 1)])
    assert show(make_slice(files, commits, at(4))) == (at(1), [(at(1), 1)])


def test_log_only_group_under_a_pending_compaction():
    commits = FakeCommits({**committed(1, 7), at(5): None}, compaction=at(5))
    files = group(log(at(1)), log(at(7)))
    assert show(make_slice(files, commits)) == (None, [(at(1), 1), (at(7), 1)])
    assert make_slice(files, commits).base_instant == at(1)


def test_unfinished_files_do_not_count():
    commits = FakeCommits({**committed(1), at(3): None, at(5): None})
    assert show(make_slice(group(base(at(1)), base(at(3)), log(at(5))), commits)) == (at(1), [])
    assert make_slice(group(base(at(3)), log(at(5))), commits) is None


def test_completed_log_over_an_uncommitted_base_is_kept():
    commits = FakeCommits({**committed(1, 5), at(3): None})
    assert show(make_slice(group(base(at(1)), base(at(3)), log(at(5))), commits)) == (at(1), [(at(5), 1)])


def test_log_only_group_opens_with_its_first_committed_log():
    commits = FakeCommits({at(1): None, **committed(3, 5)})
    result = make_slice(group(log(at(1)), log(at(3)), log(at(3), 2), log(at(5))), commits)
    assert show(result) == (None, [(at(3), 1), (at(3), 2), (at(5), 1)])
    assert result.base_instant == at(3)


def test_nothing_before_the_first_slice():
    commits = FakeCommits(committed(3))
    assert make_slice(group(base(at(3))), commits, at(2)) is None
    assert find_base_file(group(base(at(3))), commits, at(2)) is None


def test_read_optimised_takes_the_newest_committed_base():
    commits = FakeCommits({**committed(1, 3), at(5): None}, compaction=at(5))
    files = group(base(at(1)), base(at(3)), base(at(5)), log(at(3)))
    assert find_base_file(files, commits).instant == at(3)
    assert find_base_file(files, commits, at(2)).instant == at(1)
    assert find_base_file(group(log(at(3))), commits) is None


def test_one_of_several_base_files_of_an_instant():
    commits = FakeCommits(committed(1))
    result = make_slice(group(base(at(1), "0-1-1"), base(at(1), "0-1-2")), commits)
    assert result.base_file.path.endswith(f"0-1-2_{at(1)}.parquet")


def test_names_that_are_no_data_files_are_ignored():
    names = [
        ".hoodie_partition_metadata", f"{base(at(1))}.crc", "part-00000.parquet", "README.md", log(at(1)) + ".cdc",
        "x_y_z.parquet",
    ]  # fmt: skip
    assert group_files("p", [FileInfo(f"p/{name}", 1, False) for name in names]) == []
    assert group_files("p", [FileInfo(f"p/{base(at(1))}", 0, True)]) == []


@st.composite
def histories(draw: st.DrawFn) -> tuple[FakeCommits, list[str]]:
    """Writes one after another: base files, logs and unfinished commits of one group."""
    completions: dict[str, str | None] = {}
    names: list[str] = []
    for number in range(1, draw(st.integers(1, 12)) + 1):
        kind = draw(st.sampled_from(["base", "log", "log", "log"]))
        late = draw(st.integers(1, 6))
        completions[at(number * 3)] = draw(st.sampled_from([None, at(number * 3 + late)]))
        names.append(base(at(number * 3)) if kind == "base" else log(at(number * 3)))
    return FakeCommits(completions), names


@given(histories(), st.integers(0, 40))
def test_every_committed_log_is_read_at_exactly_one_base(history: tuple[FakeCommits, list[str]], query: int):
    commits, names = history
    files = group(*names)
    now = make_slice(files, commits)
    bases = [each.instant for each in files.base_files if commits.is_committed(each.instant)]
    logs = [each.name.instant for each in files.log_files if commits.is_committed(each.name.instant)]
    if now is None:
        assert not bases
        assert not logs
        return
    assert (now.base_file.instant if now.base_file else None) == (max(bases) if bases else None)
    expected = [each for each in logs if not bases or commits.completions[each] >= max(bases)]
    assert [each.name.instant for each in now.log_files] == sorted(expected)
    then = make_slice(files, commits, at(query))
    if then is not None:
        assert then.base_instant <= at(query)
        assert all(each.name.instant <= at(query) for each in then.log_files)
