"""What a check of a table has done so far, in a file, so that one that was killed goes on where it stood.

The file has a line of JSON for the state of the table and the options, then one for each part that is done: a file
slice, or a partition of the metadata table. Lines are only added. One that was not written whole, or that says another
thing than this package writes, does not count, nor does what follows it.

The rule: what was checked before counts only for the same table, at the same instants, with the same options,
checked as this version does. Else the file is begun anew, and the report says why. Files that were damaged after they
were checked are not looked at again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from os import PathLike
from pathlib import Path
from typing import Any

from hoodie_py.errors import InvalidQueryError
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.metadata_check.report import Finding, PartReport

_FORM = 2  # the next number once a check looks at more, or lines say another thing
_LONGEST = 1 << 30
_NAMES = {
    "table": "it is of another table",
    "state": "the table has changed since",
    "options": "it was made with other options",
    "verify": "another version of hoodie_py made it",
}


class VerifyProgress:
    """The parts that are done, and their reports.

    Args:
        path: the file; it need not exist.
        about: what the check is of; see ``describe_check``.

    Attributes:
        restarted: why what the file said does not count; None if it counts, or if there was none.

    Raises:
        InvalidQueryError: the path is a folder, or a file of something else.
    """

    def __init__(self, path: str | PathLike[str], about: Mapping[str, str]) -> None:
        self._path = Path(path)
        self._done: dict[tuple[str, str], PartReport] = {}
        self.restarted: str | None = None
        header = {"verify": _FORM, **about}
        if not self._path.parent.is_dir() or self._path.is_dir():
            raise InvalidQueryError("The progress of a check goes to a file in a folder that exists.", path=str(path))
        lines = self._read_lines()
        if lines:
            self.restarted = _find_difference(lines[0], header)
            if self.restarted is None:
                self._take(lines[1:])
        self._file = self._path.open("w", encoding="utf-8")
        self._add(header)
        for (part, place), report in self._done.items():
            self._add({"part": part, "place": place, "report": asdict(report)})

    def find(self, part: str, place: str = "") -> PartReport | None:
        """Return the report of something that was checked before; None if it was not."""
        return self._done.get((part, place))

    def save(self, part: str, report: PartReport, place: str = "") -> None:
        """Note that something is done."""
        self._add({"part": part, "place": place, "report": asdict(report)})

    def close(self, *, done: bool) -> None:
        """Close the file, and remove it if the check is done: the next one looks at everything."""
        self._file.close()
        if done:
            self._path.unlink(missing_ok=True)

    def _add(self, line: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()

    def _read_lines(self) -> list[dict[str, Any]]:
        """Return the lines up to the first that is not whole."""
        if not self._path.exists() or not self._path.stat().st_size:
            return []
        found: list[dict[str, Any]] = []
        with self._path.open(encoding="utf-8", errors="replace") as file:
            for line in iter(lambda: file.readline(_LONGEST), ""):
                try:
                    value = json.loads(line) if line.endswith("\n") else None
                except ValueError:
                    value = None
                if not isinstance(value, dict):
                    break
                found.append(value)
        if not found or "verify" not in found[0]:
            raise InvalidQueryError(
                "This file is not the progress of a check.", hint="Name another file.", path=str(self._path)
            )
        return found

    def _take(self, lines: list[dict[str, Any]]) -> None:
        for line in lines:
            try:
                self._done[line["part"], line["place"]] = _read_report(line["report"])
            except (KeyError, TypeError):
                break


def describe_check(snapshot: Snapshot, options: Mapping[str, str], *, data: bool, metadata: bool) -> dict[str, str]:
    """Return what a check is of: the table, its instants and properties, the options."""
    instants = [
        (each.request_time, each.completion_time, each.action, each.state) for each in snapshot.timeline.timeline
    ]
    state = repr((snapshot.instant, instants, sorted(snapshot.config.properties.items())))
    chosen = repr((data, metadata, sorted(options.items())))
    return {
        "table": snapshot.files.uri,
        "state": hashlib.sha256(state.encode()).hexdigest(),
        "options": hashlib.sha256(chosen.encode()).hexdigest(),
    }


def _find_difference(found: Mapping[str, Any], header: Mapping[str, Any]) -> str | None:
    for name, why in _NAMES.items():
        if found.get(name) != header[name]:
            return why
    return None


def _read_report(value: Mapping[str, Any]) -> PartReport:
    """Return the report that a line has.

    Raises:
        KeyError: it lacks a field.
        TypeError: it is no report.
    """
    facts = {each.name: value[each.name] for each in fields(PartReport)}
    lists = {name: [Finding(**each) for each in facts[name]] for name in ("findings", "remarks")}
    return PartReport(**{**facts, **lists})
