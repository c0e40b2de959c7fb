"""How many rows of a table a scan reads at once."""

from __future__ import annotations

import pytest

from hoodie_py.table.scan.scan import choose_batch_rows


@pytest.mark.parametrize(("columns", "rows"), [(0, 65_536), (4, 65_536), (8, 32_768), (22, 16_384), (10_000, 16_384)])
def test_fewer_rows_of_more_columns_are_read_at_once(columns: int, rows: int) -> None:
    assert choose_batch_rows(columns) == rows
