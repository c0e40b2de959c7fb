"""How many cores and how much memory this process may use.

The smallest limit counts: the machine's size, the container's (control groups of version 1 or 2, and all groups around
them), and the process's own (CPU affinity, RLIMIT_AS).
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from functools import lru_cache
from io import FileIO

_MEMBERSHIP = "/proc/self/cgroup"
_CGROUP_ROOT = "/sys/fs/cgroup"


def count_cores() -> int:
    """Count the cores that this process may use: CPU affinity, and the container's quota of processor time."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _find_core_quota(_MEMBERSHIP, _CGROUP_ROOT)
    return cores if quota is None else max(1, min(cores, round(quota)))


@lru_cache(maxsize=1)
def find_memory_limit() -> int:
    """Return the memory of the machine in bytes, or the container's limit if that is less; looked up once."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([physical, *_list_memory_limits(_MEMBERSHIP, _CGROUP_ROOT)])


def find_address_space_limit() -> int | None:
    """Return the process's own limit (RLIMIT_AS) in bytes; None without one."""
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft


def measure_free_memory() -> int:
    """Return the bytes of memory that are free now, at most the container's limit.

    Memory in use by the container is not subtracted: its count includes cached file pages, which are freed on demand.
    """
    limit = find_memory_limit()
    if "SC_AVPHYS_PAGES" not in os.sysconf_names:  # macOS does not report it: assume a half
        return limit // 2
    return min(limit, os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))


@lru_cache(maxsize=1)
def _find_core_quota(membership: str, root: str) -> float | None:
    """Return the smallest quota of the process's control groups, in cores; None without one. Looked up once."""
    quotas = []
    for group, version in _list_groups("cpu", membership, root):
        if version == 2:
            words = _read_text(f"{group}/cpu.max").split()  # "200000 100000", or "max 100000"
        else:
            words = [_read_text(f"{group}/cpu.cfs_{name}_us").strip() for name in ("quota", "period")]
        if len(words) == 2 and all(word.isdecimal() for word in words) and int(words[1]):  # neither "max" nor -1
            quotas.append(int(words[0]) / int(words[1]))
    return min(quotas, default=None)


def _list_memory_limits(membership: str, root: str) -> Iterator[int]:
    """Yield the memory limits in bytes of the process's control groups."""
    for group, version in _list_groups("memory", membership, root):
        limit = _read_text(f"{group}/{'memory.max' if version == 2 else 'memory.limit_in_bytes'}").strip()
        if limit.isdecimal():  # not the word max
            yield int(limit)


def _list_groups(controller: str, membership: str, root: str) -> Iterator[tuple[str, int]]:
    """Yield the folders of the control groups that bound this process, innermost first, and their version.

    ``controller`` is "cpu" or "memory". ``membership`` is a file that lists the groups of the process; without it there
    are none. ``root`` is where the groups are mounted.
    """
    for line in _read_text(membership).splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]  # "0::/a" in version 2, "4:memory:/a" in version 1
        if controllers == "":
            top, version = root, 2
        elif controller in controllers.split(","):
            top, version = f"{root}/{controller}", 1
        else:
            continue
        group = f"{top}/{path.strip('/')}".rstrip("/")
        while True:
            yield group, version
            if len(group) <= len(top):
                break
            group = group.rpartition("/")[0]


def _read_text(path: str) -> str:
    """Return the text of a file; "" if the file is missing or not text."""
    try:
        with FileIO(path) as file:  # pathlib and text files would add to the start of every process
            return file.readall().decode()
    except (OSError, UnicodeDecodeError):
        return ""
