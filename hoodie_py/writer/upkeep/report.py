"""What table services say: what is due and why, and what was done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from hoodie_py.runtime.wording import Sentence
from hoodie_py.table.scan.html_table import format_html_table

State = Literal["due", "not due", "waits", "not handled", "unknown"]
"""``waits``: for another writer that is at work. ``not handled``: the table has a feature that this service lacks.
``unknown``: what tells it cannot be read."""


@dataclass(frozen=True, slots=True)
class DueService(Sentence):
    """One table service: whether it is due, and why or why not.

    Attributes:
        name: such as "compaction".
        state: "due", "not due", "waits", "not handled" or "unknown".
        why: the reason, with its figures, in words.
        figures: the figures alone, by name.
        instants: request times of the pending instants that it would undo or finish.

    Examples:
        >>> service = trips.services().services[0]
        >>> service.name, service.state
        ('failed writes', 'not due')
    """

    name: str
    state: State
    why: str
    figures: Mapping[str, int | float | str] = field(default_factory=dict)
    instants: tuple[str, ...] = ()

    @property
    def is_due(self) -> bool:
        """Whether it is due."""
        return self.state == "due"

    def __str__(self) -> str:
        return f"{self.name}: {self.state}, {self.why}"


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
