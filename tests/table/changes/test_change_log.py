"""Change logs: records in parts, and damaged bytes, which give errors of this package or rows, never anything else."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hoodie_py import CorruptFileError, HoodieError, HoodieTable
from hoodie_py.formats.names import parse_log_file_name
from hoodie_py.reader.file_slice import LogFile
from hoodie_py.reader.read_info import ReadInfo, ReadOptions
from hoodie_py.table.changes.change_log import read_change_log
from hoodie_py.table.changes.query import list_image_fields
from hoodie_py.table.changes.step_reader import StepReader
from hoodie_py.table.changes.steps import ChangeLog

TABLES = ["cdc_before_after_mor_v9", "cdc_before_mor_v9", "cdc_op_key_only_cow_v9", "flink_cow_cdc"]
COLUMNS = ("op", "record_key", "before", "after")
SIDES = frozenset({"before", "after"})


def find_step(table: HoodieTable) -> tuple[ChangeLog, ReadInfo]:
    """The first change log of a table's commits."""
    for task in table.changes().tasks():
        for step in getattr(task, "steps", ()):
            if isinstance(step, ChangeLog):
                return step, task.info
    raise AssertionError("there is no change log")


@pytest.mark.parametrize("name", TABLES)
def test_records_come_whole_whatever_the_budget(corpus: Callable[[str], Path], name: str) -> None:
    step, info = find_step(HoodieTable.open(str(corpus(name))))

    def read(options: ReadOptions) -> list[dict[str, Any]]:
        return [row for batch in read_change_log(step.files[0], info, options, COLUMNS) for row in batch.to_pylist()]

    whole = read(ReadOptions())
    assert whole
    assert read(ReadOptions(memory_limit=1)) == whole
    assert all(row["op"] in "iud" for row in whole)


def test_a_log_that_is_shorter_than_its_commit_says_is_corrupt(corpus: Callable[[str], Path]) -> None:
    step, info = find_step(HoodieTable.open(str(corpus(TABLES[0]))))
    file = step.files[0]
    with pytest.raises(CorruptFileError, match=rf"has {file.size} bytes.*say {file.size + 1}") as caught:
        list(read_change_log(LogFile(file.path, file.size + 1, file.name), info, ReadOptions(), COLUMNS))
    assert caught.value.where["path"] == file.path


@pytest.mark.parametrize("name", TABLES)
def test_damaged_bytes_are_errors_or_rows(corpus_copy: Callable[[str], Path], name: str) -> None:
    base = corpus_copy(name)
    step, info = find_step(HoodieTable.open(str(base)))
    place = base / step.files[0].path
    place.chmod(0o644)
    whole = place.read_bytes()
    assert parse_log_file_name(place.name) is not None
    reader = StepReader(info, list_image_fields(info.schema).names, SIDES, ReadOptions())

    @settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.lists(st.tuples(st.integers(0, len(whole) - 1), st.integers(0, 255)), min_size=1, max_size=4))
    def damage(changes: list[tuple[int, int]]) -> None:
        data = bytearray(whole)
        for at, value in changes:
            data[at] = value
        place.write_bytes(data)
        with suppress(HoodieError):
            for images in reader.read(step):
                assert len(images.changes.codes) == images.changes.before.num_rows == images.changes.after.num_rows

    damage()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"name":"op"', b'"name":"oq"'),
        (b'"name":"before"', b'"name":"befora"'),
        (b'"name":"record_key"', b'"name":"record_kez"'),
        (b"CDC", b"cdc"),
    ],
)
@pytest.mark.parametrize("name", TABLES)
def test_other_schemas_are_errors_or_rows(
    corpus_copy: Callable[[str], Path], name: str, old: bytes, new: bytes
) -> None:
    base = corpus_copy(name)
    step, info = find_step(HoodieTable.open(str(base)))
    place = base / step.files[0].path
    place.chmod(0o644)
    place.write_bytes(place.read_bytes().replace(old, new))
    reader = StepReader(info, list_image_fields(info.schema).names, SIDES, ReadOptions())
    with suppress(HoodieError):
        list(reader.read(step))
