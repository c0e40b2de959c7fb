"""Tables that are large in what grows, not in rows: many files, partitions and commits, all with the same few bytes.

A small table is written, then its base file and its commit are linked under other names, as often as is asked for.
The timeline has the times that a writer would give.
"""

from __future__ import annotations

import os
import shutil
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from hoodie_py import HoodieTable

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("part", pa.string())])
QUICK = {"hoodie.time.generator.max_expected_clock_skew_ms": "0"}
"""No waiting for other machines' clocks."""
_LINKS = 50_000  # of one file; ext4 allows 65,000
_BEGIN = datetime(2025, 1, 1, tzinfo=UTC)


def make_rows(keys: list[str], part: str, ts: int = 1) -> pa.Table:
    """Make rows of one partition."""
    return pa.table({"id": keys, "ts": [ts] * len(keys), "part": [part] * len(keys)}, schema=SCHEMA)


def create(path: Path, version: int = 9, table_type: str = "COPY_ON_WRITE") -> HoodieTable:
    """Create an empty table; one that is there is removed."""
    shutil.rmtree(path, ignore_errors=True)
    return HoodieTable.create(
        path, SCHEMA, record_key="id", ordering="ts", partition_by="part", table_type=table_type, table_version=version
    )


def make_wide_table(path: Path, files: int, commits: int, partitions: int) -> None:
    """Make a table of many base files with one row each, all with the key "a", in folders ``p0``, ``p1``, ..."""
    table = create(path)
    table.insert(make_rows(["a"], "p0"), QUICK)
    base = next(path.rglob("*.parquet"))
    metafile = (base.parent / ".hoodie_partition_metadata").read_bytes()
    times = [_format(number) for number in range(commits - 1)]
    _link_commits(path, times)
    source = base
    for number in range(files - 1):
        if number % _LINKS == 0:
            source = path / ".hoodie" / f"source{number}"
            shutil.copy(base, source)
        folder = path / f"p{number % partitions}"
        if not folder.exists():
            folder.mkdir()
            (folder / ".hoodie_partition_metadata").write_bytes(metafile)
        os.link(source, folder / f"{uuid.uuid4()}-0_0-1-0_{times[number % len(times)]}.parquet")


def make_old_table(path: Path, commits: int, version: int) -> None:
    """Make a table of one file group with a log, after many commits that wrote to other partitions."""
    table = create(path, version, "MERGE_ON_READ")
    table.insert(make_rows(["other"], "q"), QUICK)
    [elsewhere] = [path / each for each in _list_completed(path)]
    hidden = path / ".hoodie" / "elsewhere"
    shutil.copy(elsewhere, hidden)
    table.insert(make_rows([f"k{number}" for number in range(1000)], "p"), QUICK)
    table.upsert(make_rows(["k1"], "p", 2), QUICK)
    # The commits come between the slice's base file and its log: the base file gets an older time.
    base = next((path / "p").glob("*.parquet"))
    written = base.stem.rpartition("_")[2]
    _rename(path, written, _format(-1))
    _link_commits(path, [_format(number) for number in range(commits)], hidden)


def _rename(path: Path, old: str, new: str) -> None:
    """Give a commit another request time: its files in the timeline, its data file, and what these say."""
    for each in [*path.rglob(f"*{old}*")]:
        if each.is_dir():
            continue
        content = each.read_bytes()
        if ".hoodie" in each.parts:
            each.write_bytes(content.replace(old.encode(), new.encode()))
        each.rename(each.with_name(each.name.replace(old, new)))
    for each in _list_completed(path):
        file = path / each
        file.write_bytes(file.read_bytes().replace(old.encode(), new.encode()))


def _list_completed(path: Path) -> list[Path]:
    """Return the completed files of writes, oldest first, relative to the table."""
    folders = (path / ".hoodie" / "timeline", path / ".hoodie")
    found = [each for folder in folders for each in folder.glob("*commit") if each.is_file()]
    return [each.relative_to(path) for each in sorted(found)]


def _link_commits(path: Path, times: list[str], source: Path | None = None) -> None:
    completed = path / _list_completed(path)[0]
    action, folder = completed.suffix[1:], completed.parent
    timed = "_" in completed.name
    content = (source or completed).read_bytes()
    for number, time in enumerate(times):
        if number % _LINKS == 0:
            shared = path / ".hoodie" / f"commit{number}"
            shared.write_bytes(content)
        done = f"{time}_{int(time) + 1}.{action}" if timed else f"{time}.{action}"
        os.link(shared, folder / done)
        (folder / f"{time}.{action}.requested").touch()
        (folder / (f"{time}.inflight" if action == "commit" else f"{time}.{action}.inflight")).touch()


def _format(number: int) -> str:
    """Return the time of a commit; they come in uneven steps of about a minute, as those of a stream do."""
    moment = _BEGIN + timedelta(seconds=60 * number, milliseconds=number * 7919 % 50_000 if number > 0 else 0)
    return f"{moment:%Y%m%d%H%M%S}{moment.microsecond // 1000:03d}"
