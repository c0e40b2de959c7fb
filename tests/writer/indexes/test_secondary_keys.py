"""A secondary index follows every write: values that come, change, go, move, and null."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import InvalidTableError
from tests.writer.compaction_tables import QUICK, writable
from tests.writer.indexes.indexed_rows import make_secondary, read_index, read_places, read_secondary

GLOBAL = {**QUICK, "hoodie.index.type": "GLOBAL_SIMPLE"}


def row(number: int, ts: int, name: str | None, part: str = "p0") -> dict[str, Any]:
    return {"id": f"k{number}$", "name": name, "price": 1.0, "qty": number, "ts": ts, "part": part}


def test_the_index_follows_every_write(tmp_path: Path) -> None:
    base = writable("mdt_secondary_index_mor_v9", tmp_path)
    table = HoodieTable.open(base)
    steps: list[Callable[[HoodieTable], object]] = [
        lambda table: table.upsert([row(50, 1, "a$\\"), row(51, 1, None), row(52, 1, "same", "p7")], options=QUICK),
        lambda table: table.upsert([row(50, 2, None), row(51, 2, "\0"), row(52, 2, "same", "p7")], options=QUICK),
        lambda table: table.upsert([row(52, 3, "same")], options=GLOBAL),  # moves, with the same value
        lambda table: table.upsert([row(51, 3, "other", "p7")], options=GLOBAL),  # moves, with another one
        lambda table: table.compact(options=QUICK),
        lambda table: table.delete(["k50$"], options=QUICK),
        lambda table: table.upsert([row(50, 9, "back")], options=QUICK),
        lambda table: table.insert_overwrite([row(52, 9, "same"), row(53, 9, "new")], options=QUICK),
    ]
    for step in steps:
        step(table.refresh())
        assert read_secondary(base) == make_secondary(base, "name")
        assert read_index(base) == read_places(base)
    assert "same$k52\\$" in read_secondary(base)


def test_an_index_without_definition_is_refused(tmp_path: Path) -> None:
    base = writable("mdt_secondary_index_mor_v9", tmp_path)
    path = base / ".hoodie/.index_defs/index.json"
    content = json.loads(path.read_text())
    del content["indexDefinitions"]["secondary_index_idx_name"]
    path.write_text(json.dumps(content))
    with pytest.raises(InvalidTableError, match="secondary index"):
        HoodieTable.open(base).upsert([row(50, 1, "a")], options=QUICK)
