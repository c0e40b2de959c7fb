"""Java Hudi and this package commit to one table at the same time, and with it to its metadata table.

Where both change the same file groups one of them wins, and the other says so by its own exception; in any case the
table has the rows of the writes that returned, and no others, and the metadata table is right.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from hoodie_py import ConflictError
from integration.java_hudi.indexes import IndexedKind, IndexedLake
from integration.java_hudi.session import JavaHudiError, JavaSession
from integration.java_hudi.tables import SCHEMA, Row, make_row
from integration.java_hudi.test_metadata_table import BESIDE_OTHERS, JAVAS_OWN, ROUNDS

KINDS = [
    IndexedKind(9, True, True),
    IndexedKind(9, True, True, sql=False),
    IndexedKind(8, True, True, False, sql=False),
    IndexedKind(6, True, True),
]
_CONFLICT = "HoodieWriteConflictException"
_log = logging.getLogger(__name__)


@pytest.mark.timeout(1200 + 240 * ROUNDS)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_one_wins_or_both_land(java: JavaSession, kind: IndexedKind, tmp_path: Path) -> None:
    lake = IndexedLake(java, tmp_path / "table", kind)
    lake.begin()
    stamps = itertools.count(10)
    ends: Counter[str] = Counter()
    for _ in range(ROUNDS):
        for same, late in itertools.product((True, False), repeat=2):
            found = race(lake, stamps, same=same, late=late)
            lake.check_rows()
            lake.check_entries()
            _log.info("%s, same groups %s, late %s: %s", kind, same, late, dict(found))
            ends += found
            if not same:
                assert found.keys() <= {"java won", "ours won", "java failed"}
    assert {"java won", "ours won"} <= ends.keys()
    assert ends["java lost"] + ends["ours lost"] + ends["java failed"] >= ROUNDS
    if spoilt := lake.check_entries():
        _log.warning("%s: Java cannot go on where it has put entries of another index into %s", kind, sorted(spoilt))
        return
    for lost in lake.open().timeline.select_pending():  # Java alone refuses that, as later writes have landed
        lake.open().rollback(lost.request_time)
    lake.change(next(stamps))
    lake.turn(next(stamps))
    lake.check_all()


def race(lake: IndexedLake, stamps: Iterator[int], *, same: bool, late: bool) -> Counter[str]:
    """Commit as long as a write of Java runs, or once while it is about to commit; count who won and who lost.

    Args:
        lake: the table.
        stamps: ordering values, one for each write.
        same: whether both write to the same file groups.
        late: commit once, begun when Java has written a data file, and not as soon as it has begun.
    """
    ends: Counter[str] = Counter()
    theirs = _make_rows(0, next(stamps), "theirs")
    known = _list_timeline(lake) | _list_data(lake)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(_write_java, lake, theirs)
        _wait(lake, running, known, late=late)
        while not running.done():
            try:
                lake.put(_make_rows(0 if same else 1, next(stamps), "ours"), **BESIDE_OTHERS)
                ends["ours won"] += 1
            except ConflictError:
                ends["ours lost"] += 1
            if late:
                break
        end = running.result()
        if end == "java won":
            lake.note(theirs, "upsert")
        ends[end] += 1
    return ends


def _make_rows(part: int, ts: int, name: str) -> list[Row]:
    return [make_row(number, ts, name=f"{name} {ts}") for number in range(part, 24, 3)]


def _write_java(lake: IndexedLake, rows: list[Row]) -> str:
    """Have Java write rows, which are not noted; returns whether it won, lost, or failed by a fault of its own."""
    import pyarrow as pa

    chosen = lake.kind.write_options | {name.replace("__", "."): value for name, value in BESIDE_OTHERS.items()}
    try:
        lake.java.write(lake.path, pa.Table.from_pylist(rows, SCHEMA), chosen)
    except JavaHudiError as error:
        if _CONFLICT in str(error):
            return "java lost"
        if JAVAS_OWN in str(error):
            return "java failed"
        raise
    return "java won"


def _wait(lake: IndexedLake, running: Future[str], known: set[Path], *, late: bool) -> None:
    """Wait until a write of Java has begun, or until it has written a data file: then it is about to commit."""
    while not running.done() and known.issuperset(_list_data(lake) if late else _list_timeline(lake)):
        time.sleep(0.01)


def _list_timeline(lake: IndexedLake) -> set[Path]:
    return {*lake.path.glob(".hoodie/*.inflight"), *lake.path.glob(".hoodie/timeline/*.inflight")}


def _list_data(lake: IndexedLake) -> set[Path]:
    return {*lake.path.glob("p0/*.parquet"), *lake.path.glob("p0/.*.log.*")}
