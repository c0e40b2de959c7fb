"""The default limit follows from what the process may use, and is shared among readers."""

from __future__ import annotations

import pickle
import resource

import pytest

from hoodie_py.options.read import MERGE_MEMORY, SPILL_PATH
from hoodie_py.reader.memory.budget import MemoryBudget, compute_memory_share
from hoodie_py.reader.read_info import ReadOptions

GB = 1 << 30


def test_a_limit_is_shared_by_those_who_read_at_once(large_machine: None) -> None:
    assert compute_memory_share(1000, 1) == 1000
    assert compute_memory_share(1000, 4) == 250
    assert compute_memory_share(1, 4) == 1


def test_the_default_is_a_quarter_of_memory_by_processors(large_machine: None) -> None:
    assert compute_memory_share(None, 1) == 2 * GB
    assert compute_memory_share(None, 8) == 2 * GB
    assert compute_memory_share(None, 16) == GB


def test_the_default_keeps_to_the_process_own_limit(large_machine: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (4 * GB, 8 * GB))
    assert compute_memory_share(None, 1) == GB // 2
    assert compute_memory_share(None, 2) == GB // 4
    assert MemoryBudget(100).mapped_bytes == 50


def test_options_of_hudi_are_understood(large_machine: None) -> None:
    options = {MERGE_MEMORY: "12345", SPILL_PATH: "/data/a, /data/b"}
    assert MemoryBudget.from_options(ReadOptions(options=options)) == MemoryBudget(12345, "/data/a")
    assert MemoryBudget.from_options(ReadOptions(memory_limit=99, options=options)).limit == 99
    assert MemoryBudget.from_options(ReadOptions(memory_limit=99, readers=3)).limit == 33
    assert MemoryBudget.from_options(ReadOptions()) == MemoryBudget(2 * GB, None)


def test_entries_count_more_than_rows() -> None:
    budget = MemoryBudget(1000)
    assert budget.fits(700, 0)
    assert not budget.fits(800, 0)
    assert not budget.fits(0, 200)
    assert MemoryBudget(1).count_rows_at_once(1 << 40) == 1


def test_options_travel() -> None:
    assert pickle.loads(pickle.dumps(ReadOptions())) == ReadOptions()
