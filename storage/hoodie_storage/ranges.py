"""Plans the requests for a list of byte ranges: close ranges share one request, and large requests are split."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

Range = tuple[int, int]

GAP = 64 * 1024  # bytes that cost about as much as a request of their own
LARGEST = 8 * 1024 * 1024  # one request of more bytes is slower than several at once


@dataclass(frozen=True, slots=True)
class RangePlan:
    """Requests that together cover some ranges.

    ``requests`` are sorted, not empty, and do not overlap. ``asked`` are the ranges in the caller's order.
    """

    requests: tuple[Range, ...]
    asked: tuple[Range, ...]

    def cut(self, answers: Sequence[bytes]) -> list[bytes]:
        """Return the bytes of each range from the answers to the requests."""
        starts = [start for start, _ in self.requests]
        return [_assemble(wanted, starts, answers) for wanted in self.asked]


def plan_ranges(ranges: Sequence[Range], gap: int = GAP, largest: int = LARGEST) -> RangePlan:
    """Plan the requests for some ranges, which come in any order, may overlap and may be empty.

    Ranges with fewer than ``gap`` bytes between them are fetched together, at most ``largest`` bytes by one request.
    Raises ValueError if a range starts below zero or ends before it starts.
    """
    asked = tuple((int(start), int(stop)) for start, stop in ranges)
    for start, stop in asked:
        if not 0 <= start <= stop:
            raise ValueError(f"no byte range: from {start} to {stop}")
    merged: list[list[int]] = []
    for start, stop in sorted(each for each in asked if each[0] < each[1]):
        if merged and start - merged[-1][1] < gap:
            merged[-1][1] = max(merged[-1][1], stop)
        else:
            merged.append([start, stop])
    requests = tuple((at, min(at + largest, stop)) for start, stop in merged for at in range(start, stop, largest))
    return RangePlan(requests, asked)


def _assemble(wanted: Range, starts: Sequence[int], answers: Sequence[bytes]) -> bytes:
    start, stop = wanted
    pieces: list[memoryview] = []
    number = bisect_right(starts, start) - 1
    while start < stop:
        offset = start - starts[number]
        piece = memoryview(answers[number])[offset : offset + stop - start]
        if not pieces and len(piece) == stop - start == len(answers[number]):
            return bytes(answers[number])
        pieces.append(piece)
        start += len(piece)
        number += 1
    return b"".join(pieces)
