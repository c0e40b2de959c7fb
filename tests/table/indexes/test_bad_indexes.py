"""Metadata tables whose files are cut short or gone: never fewer rows in silence.

Each partition is damaged in turn, and filters are read that its index answers. HOODIE_CRASH_STRIDE=1 tries all damages.
"""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import HoodieError, HoodieWarning
from tests.corpus import unpack_indexed
from tests.writer.compaction_tables import QUICK

ON = {"hoodie.enable.data.skipping": "true"}
OFF = {"hoodie.enable.data.skipping": "false", "hoodie.metadata.enable": "false"}
Damage = Callable[[Path], None]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Java's table with every index, one of ours over an expression, and a commit in which all of them changed."""
    base = unpack_indexed("global_sql_mor_v9", tmp_path_factory.mktemp("bad") / "t")
    HoodieTable.open(base).index.build("up", "name", function="upper", options=QUICK)
    rows = [
        {"id": f"k9{n}", "part": "p1", "ts": 9000, "name": f"new{n}", "price": 900.0 + n, "day": None} for n in range(3)
    ]
    HoodieTable.open(base).upsert(rows, QUICK)
    changed = {**HoodieTable.open(base).scan(filter="part = 'p1'").to_arrow().to_pylist()[0], "ts": 9001, "price": -5.0}
    values = {name: value for name, value in changed.items() if not name.startswith("_")}
    HoodieTable.open(base).upsert([{**values, "name": "Renamed"}], QUICK)
    return base


def cut_newest(folder: Path) -> None:
    newest = list_files(folder)[-1]
    newest.write_bytes(newest.read_bytes()[: newest.stat().st_size // 2])


def empty_newest(folder: Path) -> None:
    list_files(folder)[-1].write_bytes(b"")


def lose_newest(folder: Path) -> None:
    list_files(folder)[-1].unlink()


def lose_bases(folder: Path) -> None:
    for path in folder.glob("*.hfile"):
        path.unlink()


def lose_all(folder: Path) -> None:
    shutil.rmtree(folder)


def cut_last_block(folder: Path) -> None:
    """Cut at the end of a block: of two blocks the last, of one the whole."""
    newest = list_files(folder)[-1]
    data = newest.read_bytes()
    newest.write_bytes(data[: max(0, data.rfind(b"#HUDI#"))])


def list_files(folder: Path) -> list[Path]:
    """Files of a partition, those written last at the end."""
    files = [each for each in folder.iterdir() if each.suffix != ".crc" and "partition_metadata" not in each.name]
    return sorted(files, key=lambda each: each.stat().st_mtime_ns)


DAMAGES: tuple[Damage, ...] = (lose_newest, cut_last_block, cut_newest, empty_newest, lose_bases, lose_all)
SOME = DAMAGES if os.environ.get("HOODIE_CRASH_STRIDE") == "1" else DAMAGES[:1]
FILTERS = {
    "files": ("name = 'new1'", "price = -5.0"),
    "column_stats": ("price = -5.0",),
    "partition_stats": ("part = 'p1' and price < 0",),
    "bloom_filters": ("id = 'k91'",),
    "record_index": ("id in ('k90', 'k91', 'k92')",),
    "secondary_index_by_name": ("name = 'new1'", "name = 'Renamed'"),
    "expr_index_up": ("upper(name) = 'RENAMED'",),
}


@pytest.mark.parametrize("damage", SOME, ids=lambda each: each.__name__)
@pytest.mark.parametrize("partition", FILTERS)
def test_never_fewer_rows_in_silence(partition: str, damage: Damage, table: Path, tmp_path: Path) -> None:
    base = tmp_path / "t"
    shutil.copytree(table, base)
    wanted = {where: find(base, where, OFF) for where in FILTERS[partition]}
    damage(base / ".hoodie/metadata" / partition)
    for where, rows in wanted.items():
        assert rows
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HoodieWarning)
            assert find(base, where, ON) == rows, where
            with suppress(HoodieError):
                assert find(base, where, ON, "strict") == rows, where


def find(base: Path, where: str, options: dict[str, str], integrity: str = "default") -> list[str]:
    found = HoodieTable.open(base).scan(filter=where, options=options, integrity=integrity).to_arrow()
    return sorted(found["id"].to_pylist())


def test_a_strict_scan_relies_on_no_index_that_lies(table: Path) -> None:
    """Nothing is left out that a footer does not confirm."""
    for where in ("id = 'k91'", "name = 'Renamed'", "upper(name) = 'RENAMED'"):
        plan = HoodieTable.open(table).scan(filter=where, options=ON, integrity="strict").explain()
        assert all(step.skipped == 0 for step in plan.steps if step.name != "column_stats"), str(plan)
        assert find(table, where, ON, "strict") == find(table, where, OFF)


@pytest.mark.parametrize("where", ["id in ('k90', 'k91', 'k92')", "price = -5.0"])
def test_a_metadata_table_dropped_after_it_was_opened_leaves_out_no_row(
    where: str, table: Path, tmp_path: Path
) -> None:
    base = tmp_path / "t"
    shutil.copytree(table, base)
    rows = find(base, where, OFF)
    opened = HoodieTable.open(base)
    assert opened._snapshot.metadata.open() is not None
    shutil.rmtree(base / ".hoodie/metadata")
    with pytest.warns(HoodieWarning, match="metadata table"):
        found = opened.scan(filter=where, options=ON).to_arrow()
    assert sorted(found["id"].to_pylist()) == rows
    with pytest.raises(HoodieError):
        opened.scan(filter=where, options=ON, integrity="strict").to_arrow()
