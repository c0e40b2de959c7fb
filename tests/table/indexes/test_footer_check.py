"""With the integrity "strict", statistics that a footer contradicts are errors."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_py import CorruptFileError
from hoodie_py.table.filter.bounds import ColumnBounds
from hoodie_py.table.indexes.ranges import check_footers
from tests.table.indexes.skipping_tables import open_scan, unpack


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack("types_mor_v9", tmp_path_factory.mktemp("strict"))


@pytest.mark.parametrize(
    "where", ["l < 0", "i = 1072", "dn < 0", "u < 'a'", "nul is not null", "dec = 2.25", "dt is null"]
)
def test_statistics_of_java_hold(table: Path, where: str) -> None:
    assert open_scan(table, where, integrity="strict").tasks() is not None


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        (ColumnBounds(pa.array([-1000], pa.int32()), pa.array([1000], pa.int32())), None),
        (ColumnBounds(pa.array([None], pa.int32()), pa.array([None], pa.int32())), None),
        (ColumnBounds(pa.array([1000], pa.int32()), None), "'i' in column_stats contradict"),
        (ColumnBounds(None, pa.array([-1000], pa.int32())), "'i' in column_stats contradict"),
        (ColumnBounds(pa.array(["x"]), pa.array(["y"])), None),
    ],
)
def test_a_footer_with_values_outside_of_the_bounds_is_an_error(
    table: Path, bounds: ColumnBounds, message: str | None
) -> None:
    snapshot = open_scan(table).snapshot
    skipped = [(snapshot.file_slices()[0], 0)]
    if message is None:
        check_footers(snapshot.files, skipped, {"i": bounds}, "column_stats")
        return
    with pytest.raises(CorruptFileError, match=message):
        check_footers(snapshot.files, skipped, {"i": bounds}, "column_stats")


def test_nulls_where_none_should_be_are_an_error(table: Path) -> None:
    import numpy as np

    snapshot = open_scan(table).snapshot
    bounds = {"s": ColumnBounds(nulls=np.array([0]), rows=np.array([20]))}
    with pytest.raises(CorruptFileError, match="'s' in partition_stats contradict"):
        check_footers(snapshot.files, [(snapshot.file_slices()[0], 0)], bounds, "partition_stats")
