"""What a piece of work costs that a process does once."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from tests.benchmarks.child import peak_memory, processor_seconds
from tests.benchmarks.processes import answer_of


@dataclass(frozen=True)
class Sample:
    """Seconds of processor and wall time, bytes of peak resident memory."""

    cpu: float
    wall: float
    peak: int


def cost_of(work: Callable[[], object]) -> Sample:
    """Do the work in this process, which does nothing else."""
    cpu, wall = processor_seconds(), time.monotonic()
    work()
    return Sample(processor_seconds() - cpu, time.monotonic() - wall, peak_memory())


def cost_in_process(what: str, module: str, *arguments: str) -> Sample:
    """Have a process of its own do the work: that of the module, told ``--child``, which prints its ``Sample``.

    Raises:
        RuntimeError: it failed; the text has its last words.
    """
    return Sample(**answer_of(what, module, "--child", *arguments))


def medians(samples: Sequence[Sample]) -> dict[str, float]:
    """Return the median of each figure."""
    rows = [asdict(sample) for sample in samples]
    return {key: statistics.median(row[key] for row in rows) for key in rows[0]}
