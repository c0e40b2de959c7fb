"""A limit gives as many rows of the table as it may, whatever was planned of the scan before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hoodie_py import HoodieError, HoodieTable
from tests.corpus import corpus_names


@pytest.mark.parametrize("name", corpus_names()[::4])
@pytest.mark.filterwarnings("ignore:Skipped a corrupt log block")
def test_limited_rows_are_rows_of_the_table(corpus: Callable[[str], Path], name: str) -> None:
    table = HoodieTable.open(corpus(name))
    try:
        rows = [repr(row) for row in table.scan().to_arrow().to_pylist()]
    except HoodieError as error:
        with pytest.raises(type(error)):
            HoodieTable.open(corpus(name)).scan(limit=1_000_000).to_arrow()
        return
    for limit in (1, len(rows) // 2):
        scan = HoodieTable.open(corpus(name)).scan(limit=limit)
        limited = [repr(row) for row in scan.to_arrow().to_pylist()]
        assert len(limited) == min(limit, len(rows))
        assert set(limited) <= set(rows)
        assert scan.count() == len(limited)
    assert table.scan(limit=len(rows) + 1).to_arrow().num_rows == len(rows)
