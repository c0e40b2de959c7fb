"""Writes to tables with indexes whose store dies, refuses or loses its answer while the metadata table is written.

Whatever happens: once the next write has landed, each index has what the table's rows say, and no trace of a lost one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from hoodie_py import HoodieError, HoodieTable
from hoodie_py.errors import CommitStateUnknownError
from hoodie_py.files import TableFiles
from hoodie_py.formats.names import parse_base_file_name, parse_log_file_name
from tests.corpus import unpack_indexed
from tests.writer.compaction_tables import QUICK, copied, leftovers, missing, opened, orphans
from tests.writer.faulty_files import WRITES, FaultyFiles, Killed, Plan
from tests.writer.indexes.indexed_rows import make_secondary, read_index, read_places, read_secondary

pytestmark = [
    pytest.mark.filterwarnings("ignore:The write is committed"),  # its markers were not removed
    pytest.mark.filterwarnings("ignore:A table service of the metadata table failed"),
    pytest.mark.filterwarnings("ignore:The compaction is complete"),
    pytest.mark.filterwarnings("ignore:A heartbeat was not removed"),
]
FAULTS = ("kill before", "kill after", "refuse", "lose answer")
STRIDE = int(os.environ.get("HOODIE_CRASH_STRIDE", "97"))
"""Every so manyth call that changes the metadata table; 1 tries all, which takes minutes."""
OPTIONS = {**QUICK, "hoodie.index.type": "SIMPLE", "hoodie.metadata.compact.max.delta.commits": "1"}


def row(number: int, name: str = "n", part: str = "p1") -> dict[str, Any]:
    return {"id": f"k{number:03}", "part": part, "ts": 1000 + number, "name": name, "price": 1.0, "day": None}


def change(table: HoodieTable) -> object:
    return table.upsert([row(1, "changed"), row(4, "changed"), row(901), row(902, part="new")], OPTIONS)


def delete(table: HoodieTable) -> object:
    return table.delete(["k001", "k004"], OPTIONS)


def compact(table: HoodieTable) -> object:
    return table.compact(options=OPTIONS)


def overwrite(table: HoodieTable) -> object:
    return table.insert_overwrite([row(1, "over"), row(903)], OPTIONS)


def rows(table: HoodieTable) -> list[str]:
    """All rows as text, without meta columns."""
    return sorted(map(repr, table.scan(columns=["id", "part", "ts", "name"]).to_arrow().to_pylist()))


def find_wrong_entries(base: Path) -> list[str]:
    """Say which parts of the metadata table do not have what the table has."""
    wrong = [] if read_index(base) == read_places(base) else ["record_index"]
    partitions = HoodieTable.open(base).config.metadata_partitions
    if any(name.startswith("secondary_index") for name in partitions) and read_secondary(base) != make_secondary(
        base, "name"
    ):
        wrong.append("secondary_index")
    metadata = HoodieTable.open(base / ".hoodie/metadata")
    times = {each.request_time for each in metadata.timeline if each.is_completed}
    if metadata.config.has_logs_named_by_commit:
        wrong += [path.name for path in find_strays(base / ".hoodie/metadata", times)]
    return wrong


def find_strays(folder: Path, times: set[str]) -> list[Path]:
    """Files of the metadata table that no completed instant wrote; Java archives old ones."""
    found = []
    for path in folder.glob("*/*"):
        name = parse_base_file_name(path.name) or parse_log_file_name(path.name)
        if name is not None and name.instant > min(times) and name.instant not in times:
            found.append(path)
    return [path for path in found if not path.name.endswith(".crc")]


def list_calls(table: Path, act: Callable[[HoodieTable], object], into: Path) -> list[int]:
    """Number the calls that change the metadata table, among all that change something."""
    trace = Plan(watched=WRITES)
    act(opened(FaultyFiles(TableFiles.open(copied(table, into)), trace)))
    begun = [at for at, call in enumerate(trace.trace) if ".deltacommit.requested" in call or ".log." in call]
    return list(range(begun[0], len(trace.trace)))


@pytest.mark.parametrize(
    ("name", "act"),
    [
        *(("global_sql_mor_v9", act) for act in (change, compact)),
        *(("partitioned_mor_v9", change), ("global_mor_v6", delete)),
        *(pytest.param("global_sql_mor_v9", act, marks=pytest.mark.thorough) for act in (delete, overwrite)),
        pytest.param("global_mor_v6", change, marks=pytest.mark.thorough),
    ],
)
def test_indexes_have_what_the_table_has(name: str, act: Callable[[HoodieTable], object], tmp_path: Path) -> None:
    table = unpack_indexed(name, tmp_path / "start")
    if act is compact:
        change(HoodieTable.open(table))
    before = rows(HoodieTable.open(table))
    calls = list_calls(table, act, tmp_path / "traced")
    after = rows(HoodieTable.open(tmp_path / "traced"))
    assert find_wrong_entries(tmp_path / "traced") == []
    seed = len(name) + len(act.__name__)
    for fault in FAULTS:
        for at in calls[(seed + FAULTS.index(fault) * 11) % STRIDE :: STRIDE]:
            base = copied(table, tmp_path / "case")
            plan = Plan(at=at, fault=fault, watched=WRITES)
            told: HoodieError | None = None
            with suppress(Killed):
                try:
                    act(opened(FaultyFiles(TableFiles.open(base), plan)))
                except HoodieError as error:
                    told = error
            step = (fault, plan.trace[-1], told)
            now = rows(HoodieTable.open(base))
            assert now in (before, after), step
            assert told is None or isinstance(told, CommitStateUnknownError) or now == before, step
            if act is compact:  # the next write leaves it pending
                compact(HoodieTable.open(base))
            HoodieTable.open(base).upsert([row(950, "next")], OPTIONS)
            assert find_wrong_entries(base) == [], step
            assert (orphans(base), missing(base), leftovers(base)) == ([], [], []), step
