"""A short year: many small commits with all services, and every read inside the retention; ``make year`` has all."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_py import HoodieTable
from integration.year.model import YearModel
from integration.year.year import Difference, Kind, check_table, create_table, run_year


def test_a_short_year(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOODIE_PY_READ_THREADS", "1")
    year = run_year(tmp_path / "table", Kind(clustered=True, statistics=False), 50, checks=1)
    # Archival begins at about the thirtieth commit. Two spans of five commits, as every tenth commit cleans.
    early, late = year.spans[4:6], year.spans[8:10]
    assert late[-1].active <= 40
    assert late[-1].archive_files <= 40
    assert sum(each.calls for each in late) <= 1.5 * sum(each.calls for each in early)
    assert late[-1].data_files <= 1.5 * early[-1].data_files
    assert year.reads > 20


def test_another_table_is_noticed(tmp_path: Path) -> None:
    model = YearModel()
    create_table(tmp_path / "table", Kind(6, metadata=False), model)
    table = HoodieTable.open(tmp_path / "table")
    changed = dict(model.rows)
    changed.pop(next(iter(changed)))
    model.rows = changed
    with pytest.raises(Difference, match="now: 1 keys differ"):
        check_table(table, model)
