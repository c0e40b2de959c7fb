"""What one measured process does, and what it says of it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

HOODIE, HUDI_RS, PYARROW = "hoodie_py", "hudi-rs", "pyarrow"
POLARS, DUCKDB, DATAFUSION = "polars", "duckdb", "datafusion"
STREAM, TABLE, COUNT, PLAN, CHANGES = "stream", "table", "count", "plan", "changes"


@dataclass(frozen=True)
class Job:
    """One way to read one table.

    Attributes:
        name: what the report calls it.
        table: name of the table that this one was grown from.
        path: base path.
        engine: whose reader.
        way: batch by batch, as a whole, only the number of rows, only the tasks, or what changed.
        columns: None for all.
        options: reader options, of hoodie_py only.
        processors: how many the process may use; None for all.
        check: whether the sums of an answer are wanted too.
        span: start and end of a range of commits; None for a scan.
        filter: SQL text that rows have to pass; not for hudi-rs and pyarrow.
        once: whether one read is all: the cold start is the measure then.
    """

    name: str
    table: str
    path: str
    engine: str
    way: str = STREAM
    columns: tuple[str, ...] | None = None
    options: dict[str, str] = field(default_factory=dict)
    processors: int | None = None
    check: bool = False
    span: tuple[str, str] | None = None
    filter: str | None = None
    once: bool = False

    def to_json(self) -> str:
        """Return text for the command line of the process."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Job:
        """Read what ``to_json`` wrote."""
        values = json.loads(text)
        columns, span = values.pop("columns"), values.pop("span")
        return Job(
            **values,
            columns=None if columns is None else tuple(columns),
            span=None if span is None else (span[0], span[1]),
        )


@dataclass(frozen=True)
class ReadSample:
    """What one process measured: seconds of processor time and of wall time, bytes of peak resident memory.

    ``cold_*`` include the start of the interpreter, imports and the first read; ``cpu`` and ``wall`` are a second read.
    ``rows`` and ``sums`` are of the answer.
    """

    cold_cpu: float
    cold_wall: float
    cpu: float
    wall: float
    peak: int
    rows: int
    sums: dict[str, str]
