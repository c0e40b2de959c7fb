"""The gate for folds: one at a time where Python has a lock, nobody once the scan is given up."""

from __future__ import annotations

import sys
import threading

import pytest

from hoodie_py.runtime.fold_gate import FoldGate, ScanGivenUpError


def _most_at_once(gate: FoldGate) -> int:
    inside: list[int] = []
    both = threading.Event()
    most: list[int] = []

    def enter(number: int) -> None:
        with gate.enter():
            inside.append(number)
            if len(inside) == 2:
                both.set()
            both.wait(0.2)
            most.append(len(inside))
            inside.remove(number)

    threads = [threading.Thread(target=enter, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return max(most)


@pytest.mark.parametrize(("alone", "has_lock", "most"), [(True, True, 1), (True, False, 2), (False, True, 2)])
def test_how_many_fold_at_once(alone: bool, has_lock: bool, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: has_lock, raising=False)
    assert _most_at_once(FoldGate(alone=alone)) == most


def test_an_error_inside_lets_the_next_one_in() -> None:
    gate = FoldGate(alone=True)
    with pytest.raises(KeyError), gate.enter():
        raise KeyError
    with gate.enter():
        gate.check_wanted()


def test_once_given_up_nobody_enters_and_nobody_is_stuck() -> None:
    gate = FoldGate(alone=True)
    with gate.enter():
        gate.give_up()
        with pytest.raises(ScanGivenUpError):
            gate.check_wanted()
    for _ in range(2):  # the second one would wait for ever if the first kept the lock
        with pytest.raises(ScanGivenUpError), gate.enter():
            pass
