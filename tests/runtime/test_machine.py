"""What the machine, the container and the process's own limits allow."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from hoodie_py.runtime import machine

GB = 1 << 30


def write_groups(folder: Path, membership: str, files: dict[str, str]) -> None:
    (folder / "membership").write_text(membership)
    for name, text in files.items():
        (folder / "root" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "root" / name).write_text(text)


@pytest.mark.parametrize(("quota", "cores"), [("max 100000", 4), ("200000 100000", 2), ("50000 100000", 1), ("", 4)])
def test_a_container_s_quota_counts(quota: str, cores: int, groups: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_groups(groups, "0::/", {"cpu.max": quota})
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(4)), raising=False)
    assert machine.count_cores() == cores


@pytest.mark.parametrize(
    ("membership", "files", "cores"),
    [
        ("0::/a/b", {"a/b/cpu.max": "max 100000", "a/cpu.max": "100000 100000", "cpu.max": "300000 100000"}, 1),
        ("4:cpu,cpuacct:/x", {"cpu/x/cpu.cfs_quota_us": "300000\n", "cpu/x/cpu.cfs_period_us": "100000\n"}, 3),
        ("4:cpu,cpuacct:/x", {"cpu/x/cpu.cfs_quota_us": "-1\n", "cpu/x/cpu.cfs_period_us": "100000\n"}, 4),
        ("4:memory:/x", {"cpu/x/cpu.cfs_quota_us": "100000", "cpu/x/cpu.cfs_period_us": "100000"}, 4),
    ],
)
def test_the_smallest_quota_of_all_groups_counts(
    membership: str, files: dict[str, str], cores: int, groups: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_groups(groups, membership, files)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(4)), raising=False)
    assert machine.count_cores() == cores


def test_a_container_has_no_more_memory_free_than_its_limit(groups: Path) -> None:
    write_groups(groups, "0::/", {"memory.max": "1000"})
    assert machine.find_memory_limit() == 1000
    assert machine.measure_free_memory() <= 1000


def test_without_a_container_the_machine_s_memory_counts(groups: Path) -> None:
    assert machine.find_memory_limit() == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 0 < machine.measure_free_memory() <= machine.find_memory_limit()


def test_the_limit_of_address_space_is_the_soft_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda kind: {resource.RLIMIT_AS: (5 * GB, 9 * GB)}[kind])
    assert machine.find_address_space_limit() == 5 * GB
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert machine.find_address_space_limit() is None


@pytest.mark.parametrize(
    ("membership", "files", "limits"),
    [
        ("0::/", {"memory.max": "1000\n"}, [1000]),
        ("0::/a/b\n", {"a/b/memory.max": "max", "a/memory.max": "7", "memory.max": "9"}, [7, 9]),
        (
            "12:cpu,cpuacct:/x\n4:memory:/docker/1\n",
            {"memory/docker/1/memory.limit_in_bytes": "5", "memory/memory.limit_in_bytes": "8", "memory.max": "1"},
            [5, 8],
        ),
        ("0::/gone", {}, []),
    ],
)
def test_control_groups(tmp_path: Path, membership: str, files: dict[str, str], limits: list[int]) -> None:
    write_groups(tmp_path, membership, files)
    assert list(machine._list_memory_limits(f"{tmp_path}/membership", f"{tmp_path}/root")) == limits


def test_without_control_groups_there_is_no_limit(tmp_path: Path) -> None:
    assert list(machine._list_memory_limits(f"{tmp_path}/none", str(tmp_path))) == []
