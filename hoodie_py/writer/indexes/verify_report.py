"""What a check of a table found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from hoodie_py.runtime.wording import Sentence

MOST_FINDINGS = 100  # kept for one partition of the metadata table; more are only counted

OnEntries = Callable[[str, int, int | None], None]
"""Takes the part being checked, how many of its entries are done, and their total; None if only reading shows it."""


@dataclass(frozen=True, slots=True)
class Finding(Sentence):
    """One problem, or remark. ``place`` is a file, a key or a partition of the table."""

    part: str  # the partition of the metadata table; "data" for the table's own files
    problem: str  # missing, extra, wrong, misplaced, foreign, unreadable; as a remark, not a problem: shifted
    place: str
    text: str

    def __str__(self) -> str:
        return f"{self.part}: {self.problem} {self.place}: {self.text}"


@dataclass(slots=True)
class PartReport:
    """The result of checking one part.

    Attributes:
        name: the partition of the metadata table, or "data".
        checked: number of entries that were compared.
        wrong: number of wrong entries.
        stale: number of entries of deleted files, which no reader asks for; Java leaves some.
        findings: the first problems.
        shifted: number of entries with dates that Java stores ten days late. Java makes them so, so they do not count
            as wrong; readers here do not trust them.
        remarks: the first of the shifted entries.
        unchecked: why the part is not checked here.
        untold: which of its entries cannot be checked here, and why; they do not count as compared.
    """

    name: str
    checked: int = 0
    wrong: int = 0
    stale: int = 0
    findings: list[Finding] = field(default_factory=list)
    shifted: int = 0
    remarks: list[Finding] = field(default_factory=list)
    unchecked: str | None = None
    untold: str | None = None

    def note(self, problem: str, place: str, text: str, count: int = 1) -> None:
        """Note a problem that ``count`` entries have."""
        self.wrong += count
        if len(self.findings) < MOST_FINDINGS:
            self.findings.append(Finding(self.name, problem, place, text))

    def note_shifted(self, place: str, text: str) -> None:
        """Note an entry with dates that Java stores ten days late."""
        self.shifted += 1
        if len(self.remarks) < MOST_FINDINGS:
            self.remarks.append(Finding(self.name, "shifted", place, text))

    def add(self, other: PartReport) -> None:
        """Add the result of checking a piece of the part."""
        self.checked += other.checked
        self.wrong += other.wrong
        self.findings += other.findings[: max(MOST_FINDINGS - len(self.findings), 0)]


@dataclass(frozen=True, slots=True)
class VerifyReport(Sentence):
    """The result of ``HoodieTable.verify``.

    ``resumed`` is the number of entries that an earlier, interrupted check had checked. ``restarted`` is the reason why
    the work of an earlier check does not count.
    """

    table: str
    instant: str | None
    parts: tuple[PartReport, ...]
    seconds: float = 0.0
    resumed: int = 0
    restarted: str | None = None

    @property
    def is_right(self) -> bool:
        """Whether no problem was found."""
        return not any(part.wrong for part in self.parts)

    @property
    def findings(self) -> Iterator[Finding]:
        """The findings of all parts; if many are alike, only the first."""
        for part in self.parts:
            yield from part.findings

    @property
    def remarks(self) -> Iterator[Finding]:
        """Remarks on entries that are not wrong, of all parts; if many are alike, only the first."""
        for part in self.parts:
            yield from part.remarks

    def __str__(self) -> str:
        counts = ", ".join(
            f"{part.name} {'unchecked' if part.unchecked else format(part.checked, ',')}" for part in self.parts
        )
        wrong = sum(part.wrong for part in self.parts)
        found = "nothing is wrong" if not wrong else f"{wrong:,} are wrong"
        lines = [f"Checked {self.table} at {self.instant} ({counts}): {found}, in {self.seconds:.1f} s."]
        if self.resumed:
            lines.append(f"  {self.resumed:,} of them were checked before, by a check that was interrupted.")
        if self.restarted is not None:
            lines.append(
                f"  All is checked anew, as the progress of the earlier check does not count: {self.restarted}."
            )
        lines += [f"  {part.name}: not checked: {why}" for part in self.parts if (why := part.unchecked or part.untold)]
        lines += [
            f"  {part.name}: {part.shifted:,} of the entries have dates of 1582-10-05 to 1582-10-14 ten days late, as "
            "Java stores them: readers here do not trust them, Java's lose rows by them."
            for part in self.parts
            if part.shifted
        ]
        return "\n".join([*lines, *(f"  {each}" for each in self.findings), *(f"  {each}" for each in self.remarks)])
