"""What table services say: what is due and why, and what was done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hoodie_py.runtime.wording import Sentence
from hoodie_py.table.scan.html_table import format_html_table
from hoodie_py.writer.services.due_service import DueService


@dataclass(frozen=True, slots=True)
class ServiceStep(Sentence):
    """A step that was taken.

    Attributes:
        service: name of the service.
        text: what was done, or why it failed.
        outcome: "done", "conflict" (another writer came first; the next turn tries again) or "failed".
        seconds: wall-clock time.

    Examples:
        >>> report = trips.services(run=True, options={"hoodie.compact.inline.max.delta.commits": "1"})
        >>> [(step.service, step.outcome) for step in report.steps]
        [('compaction', 'done')]
    """

    service: str
    text: str
    outcome: Literal["done", "conflict", "failed"] = "done"
    seconds: float = 0.0

    def __str__(self) -> str:
        return self.text if self.outcome == "done" else f"{self.service}: {self.outcome}: {self.text}"


@dataclass(frozen=True, slots=True)
class ServiceReport:
    """A table and its services, in the order in which they run.

    After a run ``steps`` tell what was done, and ``services`` what is due after that.
    ``is_whole``: the run was not stopped between two steps.

    Examples:
        >>> report = trips.services()
        >>> len(report.services), report.due
        (9, ())
    """

    table: str
    uri: str
    table_type: str
    version: int
    instant: str | None
    services: tuple[DueService, ...]
    steps: tuple[ServiceStep, ...] = ()
    is_whole: bool = True

    @property
    def due(self) -> tuple[DueService, ...]:
        """The services that are due."""
        return tuple(each for each in self.services if each.is_due)

    @property
    def failed(self) -> tuple[ServiceStep, ...]:
        """The steps that failed; conflicts are none of them."""
        return tuple(each for each in self.steps if each.outcome == "failed")

    def __str__(self) -> str:
        if self.steps:
            return "\n".join(map(str, self.steps))
        names = ", ".join(each.name for each in self.due)
        waiting = ", ".join(each.name for each in self.services if each.state == "waits")
        text = f"Due at {self.table}: {names}." if names else f"Nothing is due at {self.table}."
        return f"{text} Another writer keeps back: {waiting}." if waiting else text

    def __repr__(self) -> str:
        return "\n".join([str(self), *(f"  {each}" for each in self.services)])

    def _repr_html_(self) -> str:
        return format_html_table(str(self), [(each.name, f"{each.state}: {each.why}") for each in self.services])
