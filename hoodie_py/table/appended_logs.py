"""Log files of table version 6 that are gone by name, while all that was written into them is there.

Up to version 6 blocks say which commit wrote them, and a log file may have those of several: where a store appends, or
files were put together, the name in a commit's statistics need not be the name of the file. So what counts is whether
the slice's other log files hold as many bytes of each commit as the statistics say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from hoodie_py.files import TableFiles
from hoodie_py.formats.log import LogBlock, iterate_blocks
from hoodie_py.reader.file_slice import LogFile
from hoodie_py.table.bounded import read_bounded

Written = Mapping[str, Mapping[str, int]]
"""Bytes that each commit wrote, by commit, by the path of the log file."""


def is_held_by_others(
    files: TableFiles, missing: str, named: Iterable[str], there: Iterable[LogFile], wrote: Written
) -> bool:
    """Say whether other log files of a slice hold what was written into a missing one.

    Args:
        files: the table's files.
        missing: path of the log file that is gone.
        named: paths of all log files that commits name in its slice.
        there: log files of the slice.
        wrote: what commits wrote into each of the named ones.

    Raises:
        CorruptFileError, UnsupportedFeatureError: a log file cannot be read.
        StorageError: the store refused.
    """
    expected: Counter[str] = Counter()
    for path in named:
        expected.update(wrote.get(path, {}))
    held: Counter[str] = Counter()
    for log in there:
        for block in iterate_blocks(read_bounded(files, log.path, "log_bytes")):
            if isinstance(block, LogBlock) and block.instant_time:
                held[block.instant_time] += block.size
    commits = wrote.get(missing, {})
    return bool(commits) and all(held[commit] >= expected[commit] for commit in commits)
