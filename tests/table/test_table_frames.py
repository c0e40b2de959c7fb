"""A table as data frames: the rows of its scan, in one call."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable, InvalidQueryError

TABLE = "filters_projections_mor_v9"


def rows(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def test_a_table_is_an_arrow_stream_of_its_rows(corpus: Callable[[str], Path]) -> None:
    table = HoodieTable.open(corpus(TABLE))
    stream = pa.RecordBatchReader.from_stream(table)
    assert rows(stream.read_all()) == rows(table.scan().to_arrow()) == rows(table.to_arrow())


def test_columns_and_filter_are_those_of_a_scan(corpus: Callable[[str], Path]) -> None:
    table = HoodieTable.open(corpus(TABLE))
    key = table.config.record_key_fields[0]
    some = table.to_arrow(columns=[key], filter=f"{key} is not null")
    assert some.column_names == [key]
    assert rows(some) == rows(table.scan(columns=[key]).to_arrow())
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    assert table.to_pandas(columns=[key])[key].tolist() == table.to_polars(columns=[key])[key].to_list()


def test_head_gives_no_more_rows_than_asked_for(corpus: Callable[[str], Path]) -> None:
    table = HoodieTable.open(corpus(TABLE))
    whole = set(rows(table.to_arrow()))
    assert table.head().num_rows == min(5, len(whole))
    assert set(rows(table.head(2))) < whole
    assert table.head(0).schema.names == table.schema.names
    with pytest.raises(InvalidQueryError, match="The limit"):
        table.head(-1)
