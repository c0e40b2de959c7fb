"""Group file slices into Spark partitions.

A file slice is the smallest unit of work. A Spark task costs tens of milliseconds in any case, so small slices share a
partition, and every larger slice has its own. The sizes are fixed because planning runs in a worker without a session
and does not know the number of cores. Heavy partitions come first, so that no core starts a long one at the end.
"""

from __future__ import annotations

from collections.abc import Sequence

from hoodie_py.table.scan.task import ScanTask

TINY = 1 << 20  # a slice of fewer bytes shares a partition
FULL = 8 << 20  # most bytes, by ``estimate_work``, of the small slices in a partition
MOST = 64  # most small slices in a partition
_LOG_COST = 3  # decoding and merging a log byte takes about three times as long as reading a base byte


def estimate_work(task: ScanTask) -> int:
    """Return the work of a task, as a number of base file bytes that take as long."""
    logs = sum(log.size for log in task.file_slice.log_files)
    return task.size + (_LOG_COST - 1) * logs


def pack(tasks: Sequence[ScanTask]) -> list[list[ScanTask]]:
    """Group tasks into partitions, the heaviest first."""
    packed = [[task] for task in tasks if task.size >= TINY]
    group: list[ScanTask] = []
    filled = 0
    for task in tasks:
        if task.size >= TINY:
            continue
        if group and (filled + estimate_work(task) > FULL or len(group) >= MOST):
            packed.append(group)
            group, filled = [], 0
        group.append(task)
        filled += estimate_work(task)
    if group:
        packed.append(group)
    return sorted(packed, key=lambda group: -sum(estimate_work(task) for task in group))
