"""Which file slices share a Spark partition.

A slice is the smallest piece of work.  A Spark task costs tens of milliseconds whatever it does, so slices that take
less than that to read are put together; every other one gets a partition to itself.  Planning does not know how many
cores there are (it runs in a worker without a session), hence the fixed sizes.  Heavy partitions come first, so that
no core is left with a long one at the end.
"""

from __future__ import annotations

from collections.abc import Sequence

from hoodie_py.table.scan_task import ScanTask

TINY = 1 << 20  # bytes of a slice that is not worth a task of its own
FULL = 8 << 20  # bytes, by ``estimate_work``, of slices packed together
MOST = 64  # slices in a partition
_LOG_COST = 3  # a log byte takes about three times as long as a base byte: decoding, and merging


def estimate_work(task: ScanTask) -> int:
    """Return a measure of the work a task takes, in bytes of base file."""
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
