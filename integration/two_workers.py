"""Ray, Dask and Daft read a table on a local cluster of two worker processes, and give the rows of the scan.

    python -m integration.two_workers                   all of them, some five minutes
    python -m integration.two_workers dask --keep .venv-workers

Each runs in an environment with the packages of its extra (``--keep`` names a folder in which they stay), in a process
of its own. The table has six partitions and log files. Rows are compared with those of the scan, and log files must
have been read in two processes at least, none of which is the one that asks.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {"ray": [], "dask": ["distributed"], "daft": ["ray[default]"]}
"""Beside those of the extra of the same name: what makes a cluster of it."""
PARTITIONS, ROWS = 6, 30_000
_NOTES, _BEGUN = "HOODIE_TEST_READERS", "begun"
_SECONDS_TO_MEET = 60


def make_table(folder: Path) -> Any:
    """Return a table of six file slices, each with a log file: a fifth of the rows has a newer version there."""
    import pyarrow as pa

    from hoodie_py import HoodieTable

    ids = pa.array(range(ROWS), pa.int64())
    parts = pa.array([f"p{number % PARTITIONS}" for number in range(ROWS)])
    prices = pa.array([float("nan") if number % 7 == 0 else number / 4 for number in range(ROWS)])
    rows = pa.table({"id": ids, "part": parts, "price": prices, "ts": pa.array([1] * ROWS, pa.int64())})
    table = HoodieTable.create(
        folder / "t", rows.schema, record_key="id", ordering="ts", partition_by="part", table_type="MERGE_ON_READ"
    )
    table.insert(rows)
    newer = rows.take(pa.array(range(0, ROWS, 5)))
    table.upsert(newer.set_column(3, "ts", pa.array([2] * len(newer), pa.int64())))
    table.delete([{"id": number, "part": f"p{number % PARTITIONS}"} for number in range(0, ROWS, 101)])
    return table


def note_readers(folder: Path) -> None:
    """Have every process that opens a log file leave a file with its number in the folder that a variable names.

    The first one waits there for a second: two workers that are there will both read, however quick one of them is.
    """
    (folder / "sitecustomize.py").write_text(_HOOK, encoding="utf-8")


_HOOK = f"""
import os, sys, time

folder = os.environ.get("{_NOTES}")
own = os.path.join(folder or "", str(os.getpid()))


def note(event, arguments):
    if event != "open" or ".log." not in str(arguments[0]) or os.path.exists(own):
        return
    open(own, "a").close()
    end = time.monotonic() + {_SECONDS_TO_MEET}
    while os.path.exists(os.path.join(folder, "{_BEGUN}")) and len(os.listdir(folder)) < 3 and time.monotonic() < end:
        time.sleep(0.05)


if folder is not None:
    sys.addaudithook(note)
"""


@contextmanager
def run_ray() -> Iterator[None]:
    """Run a cluster of Ray with two nodes of one processor, and connect to it."""
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster()
    for _ in range(2):
        cluster.add_node(num_cpus=1, object_store_memory=300 << 20, include_dashboard=False)
    ray.init(address=cluster.address, logging_level="ERROR")
    try:
        yield
    finally:
        ray.shutdown()
        cluster.shutdown()


def read_with_ray(scan: Any) -> list[dict[str, Any]]:
    """Return the rows that two nodes of Ray give."""
    with run_ray():
        rows: list[dict[str, Any]] = scan.to_ray().take_all()
        return rows


def read_with_dask(scan: Any) -> list[dict[str, Any]]:
    """Return the rows that two worker processes of Dask give."""
    import pyarrow as pa
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        frame = scan.to_dask().compute()
    rows: list[dict[str, Any]] = pa.Table.from_pandas(frame, preserve_index=False).to_pylist()
    return rows


def read_with_daft(scan: Any) -> list[dict[str, Any]]:
    """Return the rows that Daft gives on two nodes of Ray."""
    import daft

    with run_ray():
        daft.set_runner_ray()
        rows: list[dict[str, Any]] = scan.to_daft().to_pylist()
        return rows


READS: dict[str, Callable[[Any], list[dict[str, Any]]]] = {
    "ray": read_with_ray,
    "dask": read_with_dask,
    "daft": read_with_daft,
}


def read_here(engine: str) -> None:
    """Read with an engine in this process's environment, and compare.

    Raises:
        AssertionError: other rows, or fewer than two processes read.
    """
    with tempfile.TemporaryDirectory() as scratch:
        table = make_table(Path(scratch))
        scan = table.scan(columns=["id", "part", "price", "ts"], filter="id % 4 <> 0")
        expected = sorted(map(repr, scan.to_arrow().to_pylist()))
        assert len(expected) > ROWS / 2
        notes = Path(os.environ[_NOTES])
        for each in notes.iterdir():
            each.unlink()
        (notes / _BEGUN).touch()
        began = time.monotonic()
        found = sorted(map(repr, READS[engine](scan)))
        seconds = time.monotonic() - began
        assert found == expected, f"{len(found)} rows, not {len(expected)}, or others"
        readers = {int(each.name) for each in notes.iterdir() if each.name != _BEGUN}
        assert os.getpid() not in readers, "this process read a task itself"
        assert len(readers) >= 2, f"tasks were read in {len(readers)} process"
        print(f"{len(found):,} rows in {seconds:.1f} s, tasks read in {len(readers)} worker processes")


def run(engine: str, folder: Path) -> bool:
    """Make the environment of an engine in a folder where it is missing, read there, and say whether it is right."""
    python, ready = folder / engine / "bin" / "python", folder / engine / ".ready"
    if not ready.exists():
        venv.create(folder / engine, clear=True, with_pip=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, f"{ROOT}[{engine}]", *PACKAGES[engine]], check=True)
        subprocess.run([str(python), "-m", "pip", "uninstall", "--quiet", "--yes", "hoodie_py"], check=True)
        ready.touch()
    with tempfile.TemporaryDirectory() as scratch:
        notes = Path(scratch) / "readers"
        notes.mkdir()
        note_readers(Path(scratch))
        path = os.pathsep.join([scratch, str(ROOT), str(ROOT / "storage")])
        env = {**os.environ, "PYTHONPATH": path, _NOTES: str(notes), "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}
        command = [str(python), "-m", "integration.two_workers", "--here", engine]
        done = subprocess.run(command, cwd=ROOT, env=env, text=True, capture_output=True, check=False)
    last = (done.stdout if done.returncode == 0 else done.stdout + done.stderr).strip().splitlines()[-15:]
    print(f"{engine}: {'ok' if done.returncode == 0 else 'FAILED'}", *last, sep="\n    ", flush=True)
    return done.returncode == 0


def main(given: Sequence[str] | None = None) -> int:
    """Read with what the command line names; 1 if one of them is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("engine", nargs="*", help=f"of {', '.join(READS)}; all without")
    parser.add_argument("--keep", type=Path, help="folder for the environments")
    parser.add_argument("--here", choices=list(READS), help=argparse.SUPPRESS)
    arguments = parser.parse_args(given)
    if arguments.here is not None:
        read_here(arguments.here)
        return 0
    if unknown := sorted({*arguments.engine}.difference(READS)):
        parser.error(f"there is no engine {', '.join(unknown)}: {', '.join(READS)}")
    with tempfile.TemporaryDirectory(prefix="workers-") as scratch:
        folder = (arguments.keep or Path(scratch)).resolve()
        results = [run(engine, folder) for engine in arguments.engine or READS]
    return 0 if all(results) else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
