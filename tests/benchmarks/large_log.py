"""A table whose log is much larger than its base files: copies of the log blocks that Java Hudi wrote, with new keys.

Every copy of a log file lies in the same file slice, as a further version of the same instant's log file, so a read has
to merge all of them at once.  Read by key the copies insert rows; read by position they are further versions of the
rows that the original blocks are about.

    python -m tests.benchmarks.large_log --copies 95
"""

from __future__ import annotations

import argparse
import shutil
from dataclasses import replace
from pathlib import Path

from hoodie_py.formats.names import parse_log_file_name
from tests.benchmarks.bench_tables import KEY_SHAPES, TablesAbsentError, bench_table, cache_folder
from tests.benchmarks.grow import data_files

_NAME = "mor_small"
COPIES = 95  # about 1 GB of decoded rows


def large_log(copies: int = COPIES) -> Path:
    """Return the table with so many copies of the log files of its first file group; it is made once and kept.

    Raises:
        TablesAbsentError: the packed table is not at hand.
    """
    target = cache_folder() / f"{_NAME}_log{copies}"
    if target.is_dir():
        return target
    fresh = target.with_name(target.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    shutil.copytree(bench_table(_NAME, 1, 1).path, fresh)
    files = list(data_files(fresh))
    first = min(file.file_id for file in files)
    for file in files:
        name = parse_log_file_name(file.path.name)
        if name is None or file.file_id != first:
            continue
        data = file.path.read_bytes()
        for copy in range(1, copies + 1):
            copied = replace(name, version=name.version + copy)
            file.path.with_name(copied.name).write_bytes(KEY_SHAPES[_NAME].rekey_log(data, copy))
    fresh.rename(target)
    return target


def main() -> int:
    """Make the table and print where it is."""
    parser = argparse.ArgumentParser(description="Make a table with a large log.")
    parser.add_argument("--copies", type=int, default=COPIES)
    try:
        print(large_log(parser.parse_args().copies))
    except TablesAbsentError as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
