"""DueService: whether a table service is due, and why or why not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from hoodie_py.runtime.wording import Sentence

State = Literal["due", "not due", "waits", "not handled", "unknown"]
"""``waits``: for another writer that is at work. ``not handled``: the table has a feature that this service lacks.
``unknown``: what says so cannot be read."""


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
