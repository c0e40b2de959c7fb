"""Java Hudi and this package take turns on tables with all of Java's indexes: each keeps what the other reads by.

After every round both give the rows of the model, whole and by filters that indexes answer, with skipping and without;
Java's writers find our keys by the record index, so that no key is ever there twice; and the metadata table's entries
are those of the files.

``HOODIE_JAVA_ROUNDS`` says how many rounds, and how many writes in flight, each test makes (few by default);
``HOODIE_JAVA_SEED`` chooses other random operations. ``-o log_cli=true -o log_cli_level=INFO`` shows each round.
"""

from __future__ import annotations

import logging
import os
import random
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_py import ConflictError, HoodieTable
from integration.java_hudi.indexes import IndexedKind, IndexedLake
from integration.java_hudi.session import JavaHudiError, JavaSession
from integration.java_hudi.tables import SCHEMA, Kind, Row, is_metadata_compaction_near, make_row

ROUNDS = int(os.environ.get("HOODIE_JAVA_ROUNDS", "3"))
SEED = os.environ.get("HOODIE_JAVA_SEED", "0")
VERSIONS = [(version, merge_on_read) for version in (9, 8, 6) for merge_on_read in (True, False)]
WITH_ALL = [IndexedKind(version, True, True, merge_on_read) for version, merge_on_read in VERSIONS]
KINDS = [
    *WITH_ALL,
    IndexedKind(9, True, True, records="partitioned"),
    IndexedKind(8, True, True, False, records="partitioned"),
    IndexedKind(9, True, True, records="none"),
]
_FIRST_WITH_PROCEDURE = 8
BESIDE_OTHERS = {  # Java's writers show signs of life only where others may write
    "hoodie__clean__automatic": "false",  # Java cannot go on where its clean has spoilt column_stats
    "hoodie__write__concurrency__mode": "optimistic_concurrency_control",
    "hoodie__clean__failed__writes__policy": "LAZY",
    "hoodie__write__lock__provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
}
JAVAS_OWN = '"pathInfo" is null'
"""In errors of Java's writers: its workers lack what the driver knew of a file (``BaseFile.pathInfo`` is transient), if
they list files themselves because another writer committed meanwhile. The write fails, and the table is as before."""
_log = logging.getLogger(__name__)
patient = pytest.mark.timeout(1200 + 120 * ROUNDS)
every_kind = pytest.mark.parametrize("kind", KINDS, ids=str)


@every_kind
def test_java_reads_by_indexes_what_we_wrote(java: JavaSession, kind: IndexedKind, tmp_path: Path) -> None:
    """Each operation of ours once, Java's upserts between them."""
    lake = IndexedLake(java, tmp_path / "table", kind)
    lake.begin()
    lake.check_all()
    before = lake.open().config.metadata_partitions
    lake.turn(4)
    lake.check_all()
    lake.change(5)
    lake.put([make_row(number, 6) for number in (70, 71, 72)], "insert")
    lake.check_all()
    _service(lake, 7, ours=True)
    lake.change(8)
    lake.check_all()
    if not kind.has_sql:  # Java refuses to overwrite where there is a secondary index
        lake.put([make_row(number, 9) for number in (0, 3, 90)], "insert_overwrite")
        lake.check_all()
        lake.change(10)
    _roll_back(lake, 11)
    lake.check_all()
    _service(lake, 12, ours=False)
    lake.turn(13)
    lake.check_all()
    lake.mend()
    lake.change(14)
    lake.check_all()
    assert set(lake.open().config.metadata_partitions) == set(before)


def _service(lake: IndexedLake, ts: int, *, ours: bool) -> None:
    """Compact and clean."""
    if lake.kind.merge_on_read and ours:
        lake.turn(ts)
        assert lake.open().compact().instant is not None
    elif lake.kind.merge_on_read:
        lake.java.run_compaction(lake.path, lake.kind.service_options)  # there may be nothing to compact
    if ours:
        lake.open().clean(retain_commits=1)
    else:
        lake.clean_java()
        lake.mend()  # Java cannot go on where its clean has spoilt column_stats


def _roll_back(lake: IndexedLake, ts: int) -> None:
    """Write, and have Java take it back; its procedure knows the timeline of newer tables only."""
    if lake.kind.version < _FIRST_WITH_PROCEDURE:
        return
    rows = dict(lake.rows)
    lake.put([make_row(number, ts, name="gone") for number in (0, 4, 80)])
    while is_metadata_compaction_near(lake.path):  # a clean after the write counts, too
        rows = dict(lake.rows)
        lake.put([make_row(number, ts, name="gone") for number in (0, 4, 80)])
    last = lake.open().timeline.select_writes().instants[-1].request_time
    with lake.java.configured(lake.kind.service_options):
        lake.java.call(lake.path, "rollback_to_instant", instant_time=last)
    lake.rows = rows


@patient
@every_kind
def test_rounds_in_turn(java: JavaSession, kind: IndexedKind, tmp_path: Path) -> None:
    """Random operations, Java's and ours by turns."""
    take_turns(IndexedLake(java, tmp_path / "table", kind), ROUNDS, SEED)


def take_turns(lake: IndexedLake, rounds: int, seed: str) -> None:
    """Have Java and this package each do something, and compare everything after each."""
    lot = random.Random(f"{lake.kind} {seed}")
    lake.begin()
    for number in range(rounds):
        ts = 5 + 2 * number
        _act(lake, ts, lot, ours=False)
        _act(lake, ts + 1, lot, ours=True)
        lake.check_round(number)
        _log.info("%s: %d rounds stand", lake.kind, number + 1)
    lake.mend()
    lake.check_all()


def _act(lake: IndexedLake, ts: int, lot: random.Random, *, ours: bool) -> None:
    rows = [make_row(number, ts, price=float(lot.randrange(100))) for number in lot.sample(range(60), 12)]
    choices = ["upsert", "upsert", "delete", "insert", "service", "roll back" if ours else "upsert"]
    if not (isinstance(lake.kind, IndexedKind) and lake.kind.has_sql):
        choices.append("insert_overwrite")
    choice = lot.choice(choices)
    write = lake.put if ours else lake.write
    if choice == "service":
        _service(lake, ts, ours=ours)
    elif choice == "roll back":
        _roll_back(lake, ts)
    elif choice == "delete":
        doomed = lot.sample(sorted(lake.rows), min(4, len(lake.rows) - 1))
        write([{**lake.rows[key], "ts": ts} for key in doomed], "delete")
    elif choice == "insert":
        write([make_row(1000 + 2 * ts + each, ts) for each in range(2)], "insert")
    elif choice == "insert_overwrite":
        overwrite(lake, rows[:3], ours=ours)
    else:
        write(rows)


def overwrite(lake: IndexedLake, rows: list[dict[str, object]], *, ours: bool) -> None:
    """Replace the partitions of rows."""
    if ours:
        lake.put(rows, "insert_overwrite")
        return
    parts = {row["part"] for row in rows}
    lake.rows = {key: row for key, row in lake.rows.items() if row["part"] not in parts}
    lake.write(rows, "insert_overwrite")


@patient
@pytest.mark.parametrize("kind", [*WITH_ALL, *(Kind(v, True, True, mor) for v, mor in VERSIONS)], ids=str)
def test_a_write_of_java_in_flight_survives_our_commit(java: JavaSession, kind: Kind, tmp_path: Path) -> None:
    """With all of Java's indexes, and with those that it makes by default."""
    lake = IndexedLake(java, tmp_path / "table", kind)
    lake.begin()
    survive(lake, ROUNDS)
    lake.check_all()


def survive(lake: IndexedLake, times: int) -> None:
    """Have Java write while this package commits to other file groups; both must land, but for Java's own fault.

    That comes with a record index only, and beside another writer of Java just as well.
    """
    failed = 0
    for each in range(times):
        ts = 10 + 2 * each
        theirs = [make_row(number, ts, name="theirs") for number in range(0, 24, 3)]  # p0
        ours = [make_row(number, ts, name="ours") for number in range(1, 24, 3)]  # p1
        pending = len(lake.open().timeline.select_pending())
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(lake.write, theirs, **BESIDE_OTHERS)
            while not running.done() and len(lake.open().timeline.select_pending()) == pending:
                time.sleep(0.02)
            assert not running.done(), "Java was done before we began"
            put_beside_java(lake, ours)
            try:
                running.result()
            except JavaHudiError as error:
                if JAVAS_OWN not in str(error):
                    raise
                failed += 1
        lake.check_rows()
        _log.info("%s: %d writes survived of %d", lake.kind, each + 1 - failed, each + 1)
    assert not failed or isinstance(lake.kind, IndexedKind)
    if failed:
        _log.warning("%s: %d of %d writes failed by Java's own fault", lake.kind, failed, times)


def put_beside_java(lake: IndexedLake, rows: list[Row]) -> None:
    """Commit rows, again where Java took the lock away: its clients remove the lock file of whoever has it."""
    for _ in range(3):
        try:
            lake.put(rows, **BESIDE_OTHERS)
        except ConflictError as error:
            if "lock was lost" not in str(error):
                raise
            _log.info("Java removed our lock file")
        else:
            return
    pytest.fail("Java removed our lock file three times in a row")


LONG = [WITH_ALL[0], replace(WITH_ALL[3], sql=False), WITH_ALL[4]]  # Java's cleans of COW spoil what SQL made


@patient
@pytest.mark.parametrize("kind", LONG, ids=str)
def test_each_goes_on_after_many_commits_of_the_other(java: JavaSession, kind: IndexedKind, tmp_path: Path) -> None:
    """By then each has compacted and cleaned the metadata table a few times."""
    lake = IndexedLake(java, tmp_path / "table", kind)
    lake.begin()
    take_long_turns(lake)


def take_long_turns(lake: IndexedLake, commits: int = 25) -> None:
    """Have this package commit many times in a row, then Java."""
    for ours, write in ((True, lake.put), (False, lake.write)):
        before = list_services(lake)
        for each in range(commits):
            ts = 10 + 2 * each + (0 if ours else 100)
            write([make_row(number, ts, price=each * 1.0) for number in (each % 24, (5 * each + 1) % 24, 30 + each)])
        done = Counter(action for _, action in list_services(lake) - before)
        assert done["commit"] >= 2
        assert done["clean"] >= 1
        lake.check_all()
        lake.change(200) if ours else lake.turn(201)
        lake.check_all()


def list_services(lake: IndexedLake) -> set[tuple[str, str]]:
    """List completed compactions and cleans of the metadata table that are not archived."""
    timeline = HoodieTable.open(lake.path / ".hoodie/metadata").timeline.select_completed()
    return {(each.request_time, each.action) for each in timeline if each.action in ("commit", "clean")}


@pytest.mark.parametrize("ours", [True, False], ids=["our compaction", "java's compaction"])
def test_a_late_compaction_brings_back_what_a_delete_hid(java: JavaSession, ours: bool, tmp_path: Path) -> None:
    """A log file that is later than the plan has a row with a lower ordering value than the delete that is compacted.

    The row is there from then on, in both engines. Its key is in the record index only if our compaction put it there;
    else Java's next upsert by the index inserts it a second time.
    """
    kind = IndexedKind(9, False, True, sql=False)
    lake = IndexedLake(java, tmp_path / "table", kind)
    instant = _hide_a_row(lake)
    if ours:
        lake.open().run_compaction(instant, options=kind.service_options)
    else:
        lake.run_java(instant)
    assert lake.open().verify(data=False).is_right == ours
    _upsert_one(lake, 60)
    found = java.read(lake.path, where="id = 'k005'", metadata=False)
    assert found["ts"].to_pylist() == ([60] if ours else [40, 60])


def test_a_plan_that_would_double_a_key_is_run_where_it_must_stay(java: JavaSession, tmp_path: Path) -> None:
    """Up to version 6 later log files are named after it: services delete the key where a delete has hidden it."""
    kind = IndexedKind(6, False, True)
    lake = IndexedLake(java, tmp_path / "table", kind)
    instant = _hide_a_row(lake)
    _upsert_one(lake, 30)
    with pytest.raises(ConflictError, match="brings back a key"):
        lake.open().run_compaction(instant, options=kind.service_options)
    report = lake.open().services(run=True, only=["pending plans"], options=kind.service_options)
    assert [each.outcome for each in report.steps] == ["done"], str(report)
    for ts in (30, 60):
        assert java.read(lake.path, where="id = 'k005'", metadata=False)["ts"].to_pylist() == [ts]
        assert lake.open().scan(["ts"], filter="id = 'k005'").to_arrow()["ts"].to_pylist() == [ts]
        assert lake.open().verify(data=False).is_right
        _upsert_one(lake, 60)


def _hide_a_row(lake: IndexedLake) -> str:
    """Delete a row, plan a compaction, write the row with a lower ordering value; return the plan's instant."""
    lake.begin()
    _upsert_one(lake, 50, deleted=True)
    instant = lake.schedule_java()
    _upsert_one(lake, 40, **{"hoodie.index.type": "SIMPLE"})
    assert not lake.open().scan(["id"], filter="id = 'k005'").to_arrow().num_rows
    return instant


def _upsert_one(lake: IndexedLake, ts: int, *, deleted: bool = False, **options: str) -> None:
    deletable = SCHEMA.append(pa.field("_hoodie_is_deleted", pa.bool_()))
    rows = pa.Table.from_pylist([{**make_row(5, ts), "_hoodie_is_deleted": deleted}], deletable)
    lake.java.write(lake.path, rows, lake.kind.write_options | options, operation="upsert")
