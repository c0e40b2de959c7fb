"""Counting gives as many rows as reading does, in every reference table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hoodie_py import HoodieError, HoodieTable
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
    corpus_copy: Callable[[str], Path],
) -> None:
    base = corpus_copy("event_time_updates_mor_v9")
    rows = HoodieTable.open(base).scan(query_type="read_optimized").to_arrow().num_rows
    for path in base.glob("[!.]*/*.parquet"):  # their rows can no longer be read
        data = path.read_bytes()
        footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
        path.write_bytes(data[:4] + bytes(footer - 4) + data[footer:])
    scan = HoodieTable.open(base).scan(query_type="read_optimized")
    with pytest.raises(HoodieError):
        scan.to_arrow()
    assert scan.count() == rows > 0
