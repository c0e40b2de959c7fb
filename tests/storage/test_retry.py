"""How often, how long, and with which pauses."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_storage.retry import RetryPolicy, call_with_retries


def failing(times: int) -> tuple[list[int], object]:
    calls: list[int] = []

    def call() -> int:
        calls.append(1)
        if len(calls) <= times:
            raise TimeoutError
        return len(calls)

    return calls, call


def test_calls_until_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    _, call = failing(3)
    assert call_with_retries(call, RetryPolicy(attempts=4), lambda error: True) == 4  # type: ignore[arg-type]
    calls, call = failing(9)
    with pytest.raises(TimeoutError):
        call_with_retries(call, RetryPolicy(attempts=4), lambda error: True)  # type: ignore[arg-type]
    assert len(calls) == 4
    calls, call = failing(9)
    with pytest.raises(TimeoutError):
        call_with_retries(call, RetryPolicy(attempts=4), lambda error: False)  # type: ignore[arg-type]
    assert len(calls) == 1


def test_stops_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds + 10))
    calls, call = failing(99)
    with pytest.raises(TimeoutError):
        call_with_retries(call, RetryPolicy(attempts=99, give_up_after=25), lambda error: True)  # type: ignore[arg-type]
    assert len(calls) in {3, 4}


@given(st.integers(1, 30))
def test_pauses_differ_and_are_bounded(failures: int) -> None:
    policy = RetryPolicy(first_pause=0.2, longest_pause=3)
    pauses = [policy.choose_pause(failures) for _ in range(20)]
    assert all(0 <= pause <= min(3, 0.2 * 2 ** (failures - 1)) for pause in pauses)
    assert len(set(pauses)) > 1
