"""A read within a memory limit, however small, gives what a read without one gives, and leaves nothing behind."""

from __future__ import annotations

import gc
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie_py import FileGroupReader, RecordMerger
from hoodie_py.errors import CorruptFileError, HoodieError, MergeError, StorageError
from hoodie_py.formats.config.merge_config import PAYLOAD_STRATEGY_ID, MergeMode
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.options.read import MERGE_TYPE, MERGE_USE_POSITIONS, SPILL_PATH
from hoodie_py.reader.log import log_reader as log_side
from hoodie_py.reader.memory.spill import Spill
from hoodie_py.reader.record_reader import MergeReader
from tests.reader.slices import Version, bases, config_of, logs, ordered, reader_of, rows_of, write_slice
from tests.reader.test_merge_paths import REVERSE, Ranked, Tangled
from tests.watched_requests import Request, asks

BY_COMMIT, BY_EVENT = MergeMode.COMMIT_TIME_ORDERING, MergeMode.EVENT_TIME_ORDERING
MODES: dict[str, tuple[TableConfig, type[RecordMerger] | None]] = {
    "commit time": (config_of(BY_COMMIT), None),
    "event time": (config_of(BY_EVENT), None),
    "partial update": (config_of(BY_EVENT, partial_update_mode="IGNORE_DEFAULTS"), None),
    "not associative": (config_of(), Tangled),
    "custom": (config_of(), Ranked),
    "payload": (config_of(merge_strategy_id=PAYLOAD_STRATEGY_ID, payload_class=REVERSE), None),
    "partial payload": (
        config_of(
            merge_strategy_id=PAYLOAD_STRATEGY_ID,
            payload_class="org.apache.hudi.common.model.PartialUpdateAvroPayload",
        ),
        None,
    ),
}
LIMITS = st.sampled_from([1, 100, 700, 2_000, 6_000, 20_000])
KEYS = "abcdefgh"
EXAMPLES = 15


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "table").mkdir()
    (tmp_path / "spill").mkdir()
    return tmp_path


def answer(reader: FileGroupReader) -> Any:
    """Return the rows of a read, or the first line of its error."""
    try:
        return rows_of(reader)
    except HoodieError as error:
        return type(error), error.message


def compared(base: list[Version], log: list[Version], mode: str, limit: int, **options: Any) -> None:
    config, merger = MODES[mode]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spill = folder / "spill"
        spill.mkdir()
        written = write_slice(folder, base, log, row_group_rows=3, positions=options.pop("positions", False))
        free = reader_of(folder, written, config, merger=merger, defaults={"v": 0}, options=options)
        options[SPILL_PATH] = str(spill)
        bound = reader_of(
            folder, written, config, merger=merger, defaults={"v": 0}, options=options, batch_rows=2, memory_limit=limit
        )
        assert answer(bound) == answer(free)
        assert list(spill.iterdir()) == []
        if limit == 1 and log and MERGE_TYPE not in options:
            assert bound.stats.spill.files > 0


@pytest.mark.parametrize("mode", MODES)
@given(base=bases(KEYS), log=logs(KEYS, 60), limit=LIMITS)
@settings(max_examples=EXAMPLES)
def test_histories_by_key(mode: str, base: list[Version], log: list[Version], limit: int) -> None:
    compared(base, log, mode, limit)


@pytest.mark.parametrize("mode", MODES)
@given(base=bases(KEYS), log=logs(KEYS, 40), limit=LIMITS, inserts=st.booleans())
@settings(max_examples=EXAMPLES)
def test_histories_by_position(mode: str, base: list[Version], log: list[Version], limit: int, inserts: bool) -> None:
    known = {version.key for version in base}
    updates = [version for version in log if inserts or version.key in known]
    compared(base, updates, mode, limit, positions=True)


@pytest.mark.parametrize("mode", ["commit time", "event time", "not associative"])
@given(base=bases(KEYS), log=logs(KEYS, 40), limit=LIMITS, data=st.data())
@settings(max_examples=EXAMPLES)
def test_histories_with_partial_blocks(
    mode: str, base: list[Version], log: list[Version], limit: int, data: st.DataObject
) -> None:
    lacking = st.sampled_from([(), (), ("s",), ("v", "s")])
    partly = [replace(version, absent=data.draw(lacking)) if version.kind == "row" else version for version in log]
    compared(base, partly, mode, limit)


@given(base=bases(KEYS), log=logs(KEYS, 30), limit=LIMITS)
@settings(max_examples=EXAMPLES)
def test_unmerged(base: list[Version], log: list[Version], limit: int) -> None:
    compared(base, log, "event time", limit, **{MERGE_TYPE: "skip_merge"})


def many(count: int, keys: int, **values: Any) -> list[Version]:
    return [Version(f"key-{number % keys:05}", ts=number, v=number % 91, **values) for number in range(count)]


def reading(folder: Path, limit: int | None, log: list[Version], **options: Any) -> FileGroupReader:
    base = many(300, 300)
    written = write_slice(folder / "table", base, log)
    config, merger = MODES[options.pop("mode", "event time")]
    options[SPILL_PATH] = str(folder / "spill")
    return reader_of(
        folder / "table", written, config, merger=merger, options=options, memory_limit=limit, batch_rows=50
    )


@pytest.mark.parametrize("mode", MODES)
def test_thousands_of_versions(folder: Path, mode: str) -> None:
    log = [*many(3000, 400), Version("key-00003", "block", None), *many(500, 90)]
    free, bound = reading(folder, None, log, mode=mode), reading(folder, 60_000, log, mode=mode)
    assert rows_of(bound) == rows_of(free)
    assert bound.stats.spill.files > 3
    assert free.stats.spill.files == 0
    assert (bound.stats.inserts, bound.stats.updates, bound.stats.deletes, bound.stats.log_records) == (
        free.stats.inserts,
        free.stats.updates,
        free.stats.deletes,
        free.stats.log_records,
    )


def test_few_keys_are_folded_early_and_need_no_disk(folder: Path) -> None:
    runs = [many(400, 20)] * 12
    log = [version for number, run in enumerate(runs) for version in [Version(f"cut-{number}", "block", None), *run]]
    bound = reading(folder, 300_000, log)
    assert rows_of(bound) == rows_of(reading(folder, None, log))
    assert bound.stats.spill.files == 0
    assert bound.stats.log_records == 12 * 401


def test_large_log_files_are_read_in_turn_and_remote_ones_copied(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = many(2000, 500)
    free = rows_of(reading(folder, None, log))
    local = reading(folder, 50_000, log)
    assert rows_of(local) == free
    remote = reading(folder, 50_000, log)
    monkeypatch.setattr(type(remote.info.files), "local_path", lambda files, path: None)
    for verb in ("read", "read_view"):
        monkeypatch.setattr(type(remote.info.files), verb, lambda *_: pytest.fail("read a log file whole"))
    copied: list[int] = []
    copy = Spill.copy_file
    monkeypatch.setattr(Spill, "copy_file", lambda spill, *args: (copied.append(args[-1]), copy(spill, *args))[1])
    assert rows_of(remote) == free
    assert sum(copied) == remote.stats.log_bytes == local.stats.log_bytes
    assert list((folder / "spill").iterdir()) == []


def test_a_log_file_that_has_gone_is_a_storage_error(folder: Path) -> None:
    reader = reading(folder, 1000, many(100, 10))
    for path in (folder / "table").glob(".*log*"):
        path.unlink()
    with pytest.raises(StorageError, match="no such file") as error:
        rows_of(reader)
    assert error.value.where["path"].startswith(".")


@pytest.mark.parametrize("limit", [1_000, 50_000])
def test_a_log_file_cut_short_after_its_blocks_were_found_is_corrupt(
    folder: Path, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    reader = reading(folder, limit, many(2000, 500))
    paths = sorted((folder / "table").glob(".*log*"))
    scan = log_side.scan_log_files

    def then_cut(*args: Any, **kwargs: Any) -> Any:
        blocks = scan(*args, **kwargs)
        for path in paths:
            os.truncate(path, path.stat().st_size - 10)
        return blocks

    monkeypatch.setattr(log_side, "scan_log_files", then_cut)
    with pytest.raises(CorruptFileError, match="cut short while its file was read") as error:
        rows_of(reader)
    assert error.value.where["path"].startswith(".")
    assert list((folder / "spill").iterdir()) == []


class Failing(Tangled):
    """Fails at one pair."""

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        if context.get_value(newer, "v") == -7:
            raise ValueError("minus seven")
        return newer


def test_an_error_names_key_and_instants_from_disk_too(folder: Path) -> None:
    log = [*many(600, 60), Version("cut", "block", 1), replace(many(5, 60)[4], v=-7)]
    written = write_slice(folder / "table", [], log)
    options = {SPILL_PATH: str(folder / "spill")}
    reader = reader_of(folder / "table", written, config_of(), merger=Failing, options=options, memory_limit=9_000)
    with pytest.raises(MergeError, match="minus seven") as error:
        rows_of(reader)
    assert error.value.where["key"] == "key-00004"
    assert error.value.where["instants"].split() == ["20260102000000000", "20260102000000002"]
    assert reader.stats.spill.files > 0
    assert list((folder / "spill").iterdir()) == []


# ------------------------------------------------------------------------------------------------------------- endings


def spilling(folder: Path) -> Iterator[pa.RecordBatch]:
    batches = reading(folder, 20_000, many(2000, 700)).to_batches()
    next(batches)
    assert len(list((folder / "spill").iterdir())) == 1
    return batches


def test_nothing_is_left_after_the_last_batch(folder: Path) -> None:
    for _ in spilling(folder):
        assert len(list((folder / "spill").iterdir())) == 1
    assert list((folder / "spill").iterdir()) == []


def test_nothing_is_left_where_a_generator_is_closed(folder: Path) -> None:
    spilling(folder).close()  # type: ignore[attr-defined]
    assert list((folder / "spill").iterdir()) == []


def test_nothing_is_left_where_a_generator_is_dropped(folder: Path) -> None:
    batches = spilling(folder)
    del batches
    gc.collect()
    assert list((folder / "spill").iterdir()) == []


def test_batches_outlive_the_files(folder: Path) -> None:
    batches = list(spilling(folder))
    rows = ordered(row for batch in batches for row in batch.to_pylist())
    assert len(rows) == len({row["id"] for row in rows})


CHILD = """
import os, resource, sys
from pathlib import Path
from tests.reader.test_memory_limit import many, reading
batches = reading(Path(sys.argv[1]), 20_000, many(2000, 700)).to_batches()
next(batches)
print("ready", flush=True)
{ending}
"""


@pytest.mark.parametrize("ending", ["pass", "raise ValueError('no')"])
def test_nothing_is_left_where_the_interpreter_ends(folder: Path, ending: str) -> None:
    script = CHILD.format(ending=ending)
    done = subprocess.run([sys.executable, "-c", script, str(folder)], capture_output=True, timeout=120, check=False)
    assert done.stdout == b"ready\n", done.stderr
    assert list((folder / "spill").iterdir()) == []


def test_what_a_killed_reader_left_goes_with_the_next_read(folder: Path) -> None:
    script = CHILD.format(ending="os.kill(os.getpid(), 9)")
    done = subprocess.run([sys.executable, "-c", script, str(folder)], capture_output=True, timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(list((folder / "spill").iterdir())) == 1
    assert len(list(spilling(folder))) > 1
    assert list((folder / "spill").iterdir()) == []


def test_a_full_disk_names_the_directory_and_the_cure(folder: Path) -> None:
    reader = reading(folder, 60_000, many(5000, 3000))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, hard))
    try:
        with pytest.raises(StorageError, match=r"spilled to disk: .*[Ff]ile too large.*or raise memory_limit") as error:
            rows_of(reader)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert error.value.where["path"].startswith(str(folder / "spill"))
    assert list((folder / "spill").iterdir()) == []


# --------------------------------------------------------------------------------------------------- a log read once


def test_a_loaded_log_is_read_once(folder: Path, requests_made: list[Request]) -> None:
    log = many(2000, 700)
    want = rows_of(reading(folder, None, log))
    with reading(folder, 20_000, log).load() as reader:
        keys = sorted(reader.keys())
        is_log = asks(r"\.log\.")
        assert any(map(is_log, requests_made))
        requests_made.clear()
        assert rows_of(reader) == want
        assert rows_of(reader) == want
        assert not any(map(is_log, requests_made))
        assert keys == sorted(row["_hoodie_record_key"] for row in want)
        assert len(list((folder / "spill").iterdir())) == 1
    assert list((folder / "spill").iterdir()) == []


@pytest.mark.parametrize("sort_output", [False, True])
@pytest.mark.parametrize("positions", ["true", "false"])
def test_records_for_writers_come_in_the_same_order(folder: Path, sort_output: bool, positions: str) -> None:
    base, log = many(60, 60), [replace(version, key=version.key[:-1] + "7") for version in many(900, 300)]
    written = write_slice(folder / "table", base, log, positions=True)
    config, _ = MODES["event time"]
    seen = []
    for limit in (None, 9_000):
        options = {SPILL_PATH: str(folder / "spill"), MERGE_USE_POSITIONS: positions}
        plain = reader_of(folder / "table", written, config, options=options, memory_limit=limit, batch_rows=7)
        with MergeReader(written, plain.info, options=plain.options, sort_output=sort_output) as reader:
            records = [
                (record.record_key, record.operation, reader.context.get_value(record, "v"))
                for record in reader.buffered_records(emit_deletes=True)
            ]
            found = [record.record_key for record in reader.look_up(["key-00007", "key-00297", "no"])]
            assert (reader.stats.spill.files > 0) == (limit is not None)
        at_the_end = records[len(base) :]
        seen.append((records if sort_output else [*records[: len(base)], *sorted(at_the_end)], sorted(found)))
    assert seen[0] == seen[1]
    assert list((folder / "spill").iterdir()) == []
