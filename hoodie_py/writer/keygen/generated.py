"""Record keys that a write generates, for tables without record key fields (Hudi ``AutoRecordGenWrapperKeyGenerator``).

A key is ``<time>_<task>_<row>``, as in Java. Java takes the time of the commit and the number of the Spark task. Here
keys are made before the commit has its time. So the time is the current one, and the number of the task is random: no
two writes make the same key, whatever their clocks show.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_numpy

_TASK_BITS = 40
_SPARK_TASKS = 1_000_000


@dataclass(frozen=True, slots=True)
class GeneratedKeys:
    """Makes keys for rows in their order. ``first`` is the number of the next row. Small and picklable."""

    time: str
    task: int
    first: int = 0

    @classmethod
    def begin(cls) -> Self:
        """Return a maker of keys that no other maker makes."""
        return cls(datetime.now(UTC).strftime("%Y%m%d%H%M%S%f")[:17], secrets.randbits(_TASK_BITS))

    def for_task(self, number: int, first: int) -> GeneratedKeys:
        """Return the maker for a Spark task, which may be repeated: the same rows get the same keys."""
        return replace(self, task=self.task * _SPARK_TASKS + number, first=first)

    def make(self, count: int) -> pa.ChunkedArray:
        """Make the keys of ``count`` rows."""
        numbers = from_numpy(np.arange(self.first, self.first + count)).cast(pa.string())
        return pa.chunked_array([pc.binary_join_element_wise(f"{self.time}_{self.task}_", numbers, "")], pa.string())
