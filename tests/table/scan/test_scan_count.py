"""Counting gives as many rows as reading does, in every reference table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hoodie_py import HoodieError, HoodieTable
from hoodie_py.reader.base.base_file import BaseFileReader
from tests.corpus import corpus_names


@pytest.mark.parametrize("name", corpus_names())
@pytest.mark.filterwarnings("ignore:Skipped a corrupt log block")
def test_count_is_the_number_of_rows(corpus: Callable[[str], Path], name: str) -> None:
    try:
        scan = HoodieTable.open(corpus(name)).scan()
        rows = scan.to_arrow().num_rows
    except HoodieError as error:
        with pytest.raises(type(error)):
            HoodieTable.open(corpus(name)).scan().count()
        return
    assert scan.count() == rows
    for options in ({"hoodie.merge.use.record.positions": "false"}, {"hoodie_py.read.threads": "3"}):
        assert HoodieTable.open(corpus(name)).scan(options=options).count() == rows


def test_base_files_alone_are_counted_by_their_footers(
    corpus: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    scan = HoodieTable.open(corpus("event_time_updates_mor_v9")).scan(query_type="read_optimized")
    rows = scan.to_arrow().num_rows

    def no_rows(*_: object) -> None:
        raise AssertionError("rows were read")

    monkeypatch.setattr(BaseFileReader, "_read_row_group", no_rows)
    assert scan.count() == rows > 0
