"""Batches of streams: those of a history are right, and wrong ones are noticed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hoodie_py.spark.stream.history import History
from integration.histories.findings import Counts, Difference
from integration.histories.model import Kind
from integration.histories.operations import Change, Clean, Compact, LogCompact, Operation, Upsert
from integration.histories.rules import Row
from integration.histories.streams import check_stream
from integration.histories.table_under_test import TableUnderTest
from integration.histories.test_ranges import COW, EVENT, HISTORY, PLANS, SIX


def put(ts: int, *keys: str) -> Upsert:
    """Rows of several partitions, the number of each is in its key."""
    return Upsert(tuple(Change(Row(key, f"p{key[1:]}", ts, 1, "n")) for key in keys))


CLEANED: tuple[Operation, ...] = (
    *(put(ts, "k0", "k1") for ts in range(3)),
    *(put(ts, "k0") for ts in range(3, 6)),
    Clean(2, by_versions=True),
    Clean(3),
)
"""The second clean retains a commit of whose state the first one removed a file."""


def follow(base: Path, kind: Kind, operations: tuple[Operation, ...], commits: int) -> Counts:
    table = TableUnderTest(str(base), kind, Counts())
    for each in operations:
        table.do(each)
    check_stream(table.past(), table.opened(), commits)
    return table.counts


@pytest.mark.parametrize("commits", [1, 3])
@pytest.mark.parametrize("kind", [EVENT, SIX, COW, replace(EVENT, version=8)], ids=str)
def test_every_batch_of_a_history(tmp_path: Path, kind: Kind, commits: int) -> None:
    history = tuple(each for each in HISTORY if kind.merge_on_read or not isinstance(each, PLANS))
    folded = (LogCompact(), Compact()) if kind.merge_on_read and kind.version > 6 else ()
    seen = follow(tmp_path / "t", kind, (*history, *folded, put(9, "k0")), commits).ranges
    assert seen["batches of streams"] >= len(history) // commits // 2
    assert not seen["batches of streams refused"]


@pytest.mark.parametrize("version", [9, 6])
def test_a_first_batch_after_cleans(tmp_path: Path, version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = replace(COW, version=version, partitioned=True)
    assert not follow(tmp_path / "t", kind, CLEANED, 1).ranges["batches of streams refused"]
    monkeypatch.setattr(History, "_check_kept", lambda *_: None)
    monkeypatch.setattr(History, "_find_first_state", lambda self: self._list_readable()[3].request_time)
    with pytest.raises(Difference, match=r"a batch from the beginning .* lacks"):
        follow(tmp_path / "u", kind, CLEANED, 1)
