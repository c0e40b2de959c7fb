"""Find the blocks of a missing log file in other log files of its file slice (table version 6 and below).

Up to version 6 a log file may hold blocks of several commits, and each block names its commit. Where the store appends,
or where somebody joined files, the log file that a commit's statistics name may not exist, although its blocks do.

The rule: nothing is lost if the slice's other log files hold as many bytes of each commit as the statistics say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from hoodie_py.files import TableFiles
from hoodie_py.formats.log.framing import LogBlock, iterate_blocks
from hoodie_py.reader.file_slice import LogFile
from hoodie_py.table.bounded import read_bounded

Written = Mapping[str, Mapping[str, int]]
"""Path of a log file -> request time of a commit -> bytes that it wrote there."""


def is_held_by_others(
    files: TableFiles, missing: str, named: Iterable[str], there: Iterable[LogFile], wrote: Written
) -> bool:
    """Say whether other log files of a slice hold the blocks of a missing one.

    ``named`` are the paths of all log files that commits name in the slice, ``there`` its log files that exist, and
    ``wrote`` the bytes that commits wrote into each of the named ones.

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
