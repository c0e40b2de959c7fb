"""Two processes write to one table by default options: whatever was acknowledged is there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from hoodie_py import HoodieTable
from hoodie_py.testing import local_s3
from tests.writer.written_tables import SCHEMA, Kind

UPSERTS = 12
ROOT = Path(__file__).resolve().parents[2]

WRITER = """
import json, os, random, sys, time
from hoodie_py import HoodieTable
from hoodie_py.errors import ConflictError

base, name, user, count, storage = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), json.loads(sys.argv[5])
import pyarrow.compute, pyarrow.parquet
if storage:
    import s3fs
from hoodie_py.writer.pipeline import write as write_data
if user:
    os.setgroups([]); os.setgid(user); os.setuid(user)
os.umask(0)
done, refused, until = [], 0, time.monotonic() + 200
while len(done) < count and time.monotonic() < until:
    key = f"{name}{len(done)}"
    rows = [{"id": key, "part": "p0", "ts": 1, "name": name}, {"id": "both", "part": "p0", "ts": 1, "name": key}]
    try:
        result = HoodieTable.open(base, storage_options=storage).upsert(rows)
    except ConflictError:
        refused += 1
        time.sleep(random.random() * 0.2)
        continue
    done.append([key, result.instant])
print(json.dumps([done, refused]))
"""


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Path]:
    """A table that every user may write to."""
    folder = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else "/tmp"))
    folder.chmod(0o777)
    yield folder / "table"
    shutil.rmtree(folder)


def begun(
    base: Path | str, name: str, tmpdir: Path, user: int = 0, storage: Mapping[str, Any] | None = None
) -> subprocess.Popen[str]:
    tmpdir.mkdir(exist_ok=True)
    tmpdir.chmod(0o777)
    environment = {**os.environ, "TMPDIR": str(tmpdir), "PYTHONPATH": f"{ROOT}:{ROOT / 'storage'}"}
    command = [sys.executable, "-c", WRITER, str(base), name, str(user), str(UPSERTS), json.dumps(dict(storage or {}))]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, cwd="/")


def open_to_all(base: Path) -> None:
    for path in (base, *base.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)


USERS = [0, pytest.param(65534, marks=pytest.mark.skipif(os.getuid() != 0, reason="NOT TESTED: no root"))]


@pytest.mark.slow
@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize(
    "kind", [Kind(9, True), pytest.param(Kind(9, False), marks=pytest.mark.thorough), Kind(6, True)], ids=str
)
def test_what_was_acknowledged_is_there(kind: Kind, user: int, base: Path, tmp_path: Path) -> None:
    kind.create(base)
    open_to_all(base)
    check([begun(base, "a", tmp_path / "a"), begun(base, "b", tmp_path / "b", user)], HoodieTable.open(base))


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.s3
@pytest.mark.parametrize("user", USERS)
def test_what_was_acknowledged_is_there_on_s3(user: int, tmp_path: Path) -> None:
    with local_s3("lake") as s3:
        uri, storage = f"{s3.uri}/two", dict(s3.storage_options)
        table = HoodieTable.create(
            uri, SCHEMA, record_key="id", ordering="ts", partition_by=["part"], table_type="COPY_ON_WRITE",
            storage_options=storage,
        )  # fmt: skip
        check([begun(uri, "a", tmp_path / "a", 0, storage), begun(uri, "b", tmp_path / "b", user, storage)], table)


def check(writers: list[subprocess.Popen[str]], table: HoodieTable) -> None:
    answers = [writer.communicate()[0] for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0]
    done = [each for answer in answers for each in json.loads(answer)[0]]
    assert len(done) == 2 * UPSERTS
    table = table.refresh()
    rows = table.scan(columns=["id"]).to_arrow()["id"].to_pylist()
    assert sorted(rows) == sorted(["both", *(key for key, _ in done)])
    services = ("rollback", "clean")
    instants = {each.request_time for each in table.timeline if each.is_completed and each.action not in services}
    assert instants == {instant for _, instant in done}
    assert [each for each in table.timeline if each.action == "rollback"] == []
