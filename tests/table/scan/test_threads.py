"""Slices read on threads: every row once, bounded, and nothing left behind however reading ends."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import FileGroupReader, HoodieTable, InvalidQueryError
from hoodie_py.formats.parquet.parquet_file import ParquetFile
from hoodie_py.reader.base.filtered import Output
from hoodie_py.reader.log.log_reader import LogReader
from hoodie_py.runtime.fold_gate import FoldGate, ScanGivenUpError
from hoodie_py.table.scan import scan as scan_module
from hoodie_py.table.scan import threads as parallel
from hoodie_py.table.scan.task import ScanTask
from hoodie_py.table.scan.threads import count_threads, read_in_threads
from tests.watched_requests import far_store

Corpus = Callable[[str], Path]
TABLES = ("basic_mor_v9_part", "event_time_updates_mor_v9", "is_deleted_column_mor_v9", "logonly_bucket_mor_v9")
ONE, FOUR = {"hoodie_py.read.threads": "1"}, {"hoodie_py.read.threads": "4"}


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    yield
    assert [each.name for each in threading.enumerate() if each.name.startswith("hoodie-read")] == []


class Slices:
    """Slices of numbered batches that note what was read of them."""

    def __init__(self, slices: int, batches: int, fails_at: int | None = None) -> None:
        self.made: list[tuple[int, int]] = []
        self.closed: list[int] = []
        self._batches = batches
        self._fails_at = fails_at
        self.starts = [self._start(number) for number in range(slices)]

    def _start(self, number: int) -> Callable[[], Generator[pa.RecordBatch, None, None]]:
        def read() -> Generator[pa.RecordBatch, None, None]:
            try:
                for i in range(self._batches):
                    if number == self._fails_at:
                        raise KeyError(number)
                    self.made.append((number, i))
                    yield pa.record_batch({"slice": [number], "batch": [i]})
            finally:
                self.closed.append(number)

        return read


def rows(batch: pa.RecordBatch) -> tuple[int, int]:
    (row,) = batch.to_pylist()
    return row["slice"], row["batch"]


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_every_batch_comes_once_and_in_order_within_its_slice(threads: int) -> None:
    slices = Slices(5, 9)
    found = [(number, *rows(batch)) for number, batch in read_in_threads(slices.starts, threads)]
    assert sorted(found) == [(n, n, i) for n in range(5) for i in range(9)]
    for number in range(5):
        assert [i for n, _, i in found if n == number] == list(range(9))


def test_threads_wait_for_whoever_reads_the_rows() -> None:
    slices = Slices(2, 1000)
    with closing(read_in_threads(slices.starts, 2)) as batches:
        next(batches)
        time.sleep(0.2)
        assert len(slices.made) <= 1 + 2 * 2 + 2  # taken, waiting in the queue, in the hands of the threads
    assert sorted(slices.closed) == [0, 1]


def test_slices_that_nobody_wants_any_more_are_not_begun() -> None:
    slices = Slices(100, 3)
    with closing(read_in_threads(slices.starts, 2)) as batches:
        next(batches)
    assert len(slices.closed) < 10
    assert {number for number, _ in slices.made} == set(slices.closed)


def test_an_iterator_that_is_dropped_ends_its_threads() -> None:
    slices = Slices(4, 100)
    batches = read_in_threads(slices.starts, 2)
    next(batches)
    del batches
    assert len(slices.made) < 20


def test_an_error_in_a_slice_is_raised_where_the_rows_are_read() -> None:
    slices = Slices(50, 3, fails_at=4)
    with pytest.raises(KeyError) as caught:
        list(read_in_threads(slices.starts, 2))
    assert caught.value.args == (4,)
    assert any(entry.name == "read" for entry in caught.traceback)
    assert len(slices.closed) < 50


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # Python 3.12's about forks beside threads
def test_a_forked_process_gets_an_error() -> None:
    batches = read_in_threads(Slices(2, 100).starts, 2)
    next(batches)
    child = os.fork()
    if child == 0:
        try:
            next(batches)
        except InvalidQueryError:
            os._exit(17)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 17
    batches.close()


def test_how_many_threads(large_machine: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOODIE_PY_READ_THREADS", raising=False)
    monkeypatch.setattr(pa, "cpu_count", lambda: 6)
    assert count_threads({}) == 6
    monkeypatch.setattr(pa, "cpu_count", lambda: 1)  # as in a Spark worker
    assert count_threads({}) == 1
    monkeypatch.setenv("HOODIE_PY_READ_THREADS", "3")
    assert count_threads({}) == 3
    assert count_threads({"hoodie_py.read.threads": "5"}) == 5
    for wrong in ("0", "-1", "many", "1.5", "99999"):
        with pytest.raises(InvalidQueryError, match="number of threads"):
            count_threads({"hoodie_py.read.threads": wrong})


@pytest.mark.parametrize("name", TABLES)
def test_threads_change_nothing_in_a_table(corpus: Corpus, name: str) -> None:
    table = HoodieTable.open(corpus(name))
    alone, together = table.scan(options=ONE), table.scan(options=FOUR)
    want = alone.to_arrow()
    assert together.to_arrow().equals(want)
    batches = pa.Table.from_batches(list(together.to_batches()), together.schema)
    by_key = [("_hoodie_record_key", "ascending"), ("_hoodie_partition_path", "ascending")]
    assert batches.sort_by(by_key).equals(want.sort_by(by_key))
    assert together.count() == want.num_rows


@pytest.mark.parametrize("name", ["many_row_groups_mor_v9", "basic_cow_v9_part", "types_mor_v8_nonpart"])
def test_columns_are_decoded_in_parallel_where_slices_are_fewer_than_cores(
    corpus: Corpus, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: set[bool] = set()
    read = ParquetFile.iter_batches

    def iter_batches(*args: Any, use_threads: bool, **named: Any) -> Iterator[pa.RecordBatch]:
        asked.add(use_threads)
        yield from read(*args, use_threads=use_threads, **named)

    monkeypatch.setattr(ParquetFile, "iter_batches", iter_batches)
    table = HoodieTable.open(corpus(name))
    want = table.scan(options=ONE).to_arrow()
    assert asked == {False}
    slices = len(table.scan().tasks())
    for cores, threads, parallel_columns in ((64, 64, True), (64, slices, False), (65, 64, False)):
        asked.clear()
        monkeypatch.setattr(pa, "cpu_count", lambda cores=cores: cores)
        got = table.scan(options={"hoodie_py.read.threads": str(threads)}).to_arrow()
        assert asked == {parallel_columns}
        assert got.equals(want)


@pytest.mark.parametrize("near", [True, False])
def test_logs_are_folded_in_turn(corpus: Corpus, near: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    most: dict[str, int] = {}

    def watch(name: str) -> None:
        met: list[int] = []
        real = getattr(LogReader, name)

        def entered(log: LogReader, *args: Any) -> Any:
            met.append(threading.get_ident())
            time.sleep(0.05)  # so that others may come
            most[name] = max(most.get(name, 0), len(met))
            try:
                return real(log, *args)
            finally:
                met.remove(threading.get_ident())

        monkeypatch.setattr(LogReader, name, entered)

    watch("_fold_blocks")
    watch("_scan")
    with nullcontext() if near else far_store():
        table = HoodieTable.open(corpus("logonly_bucket_mor_v9"))
        assert table.scan(options=FOUR).to_arrow().equals(table.scan(options=ONE).to_arrow())
    assert most["_fold_blocks"] == 1
    assert (most["_scan"] == 1) == near  # bytes from elsewhere are waited for together


def test_slices_that_wait_for_their_turn_end_when_the_scan_is_given_up() -> None:
    gate = FoldGate(alone=True)
    entered: list[int] = []
    second = threading.Event()

    def slice_of(number: int) -> Generator[pa.RecordBatch, None, None]:
        with gate.enter():
            entered.append(number)
            while len(entered) > 1:  # this one folds for as long as it may
                second.set()
                gate.check_wanted()
                time.sleep(0.001)
        yield pa.record_batch({"slice": [number]})

    with closing(read_in_threads([partial(slice_of, number) for number in range(8)], 4, gate)) as batches:
        next(batches)
        assert second.wait(10)
    assert len(entered) == 2


def test_a_fold_that_nobody_wants_ends_at_its_next_block(corpus: Corpus) -> None:
    (task, *_) = HoodieTable.open(corpus("event_time_updates_mor_v9")).scan().tasks()
    met: list[int] = []

    class Impatient(FoldGate):
        def check_wanted(self) -> None:
            met.append(1)
            if len(met) == 2:  # the first was on entering
                self.give_up()
            super().check_wanted()

    with pytest.raises(ScanGivenUpError):
        list(task.to_batches(Impatient()))
    assert len(met) == 2


def test_large_slices_are_begun_first(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []
    read = ScanTask.to_batches

    def to_batches(task: ScanTask, gate: FoldGate | None = None) -> Generator[pa.RecordBatch, None, None]:
        begun.append(task.size)
        yield from read(task, gate)

    def one_by_one(slices: Sequence[parallel.Batches], *_: object) -> Generator[parallel.Numbered, None, None]:
        for number, start in enumerate(slices):
            for batch in start():
                yield number, batch

    monkeypatch.setattr(ScanTask, "to_batches", to_batches)
    monkeypatch.setattr(scan_module, "read_in_threads", one_by_one)
    table = HoodieTable.open(corpus("basic_mor_v9_part"))
    want = table.scan(options=ONE).to_arrow()
    assert len(set(begun)) > 1
    begun.clear()
    assert table.scan(options=FOUR).to_arrow().equals(want)
    assert begun == sorted(begun, reverse=True)


def test_a_limit_and_a_break_leave_no_thread(corpus: Corpus) -> None:
    table = HoodieTable.open(corpus("basic_mor_v9_part"))
    assert table.scan(limit=3, batch_rows=1, options=FOUR).to_arrow().num_rows == 3
    for _ in table.scan(batch_rows=1, options=FOUR).to_batches():
        break


def test_a_batch_that_its_reader_let_go_of_is_held_by_no_thread() -> None:
    let_go = threading.Event()
    held: list[bool] = []

    def read() -> Generator[pa.RecordBatch, None, None]:
        given = [pa.record_batch({"a": [1]})]
        seen = weakref.ref(given[0])
        yield given.pop()
        assert let_go.wait(60)
        held.append(seen() is not None)
        yield pa.record_batch({"a": [2]})

    with closing(read_in_threads([read], 1)) as batches:
        for numbered in batches:
            del numbered
            let_go.set()
            break
        for _ in batches:
            pass
    assert held == [False]


@pytest.mark.parametrize("name", ["basic_mor_v9_part", "event_time_updates_mor_v9"])
def test_a_batch_that_its_reader_let_go_of_is_not_held_while_the_next_one_is_made(
    corpus: Corpus, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[weakref.ref[pa.RecordBatch]] = []
    held: list[bool] = []
    make, to_batches = Output.make, FileGroupReader.to_batches

    def watched_output(output: Output, batch: pa.RecordBatch) -> pa.RecordBatch:
        held.extend(seen() is not None for seen in made)
        rows = make(output, batch)
        made.append(weakref.ref(rows))
        return rows

    def watched_batches(reader: FileGroupReader) -> Iterator[pa.RecordBatch]:
        for batch in to_batches(reader):
            seen, given = weakref.ref(batch), [batch]
            del batch
            yield given.pop()
            held.append(seen() is not None)

    monkeypatch.setattr(Output, "make", watched_output)
    monkeypatch.setattr(FileGroupReader, "to_batches", watched_batches)
    for batch in HoodieTable.open(corpus(name)).scan(options=ONE, batch_rows=2).to_batches():
        del batch
    assert len(made) > 1
    assert not any(held)
