"""A page about a lake: one HTML file without scripts that shows what is due at many tables.

All text that comes from a table is escaped.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from hoodie_py.cli.values import escape_controls

if TYPE_CHECKING:
    from hoodie_py.writer.services.due_service import DueService
    from hoodie_py.writer.upkeep.report import ServiceReport

_STATES = {"due": "due", "waits": "waits", "unknown": "unknown", "not handled": "off", "not due": "fine"}
_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0 0 .2rem } h2 { font-size: 1.1rem; margin: 2rem 0 .2rem }
p { margin: .2rem 0 .8rem } .quiet { opacity: .7; font-size: .9em; overflow-wrap: anywhere }
table { border-collapse: collapse; width: 100%; font-size: .9em }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem; border-bottom: 1px solid var(--line) }
thead th { border-bottom-width: 2px; font-weight: 600 } tbody tr:hover { background: var(--soft) }
td.why { overflow-wrap: anywhere }
.mark { display: inline-block; border-radius: .6em; padding: 0 .55em; font-size: .85em; white-space: nowrap }
.due { background: #c2410c; color: #fff } .waits { background: #a16207; color: #fff }
.unknown { background: #b91c1c; color: #fff } .fine, .off { background: #8883 }
.done { background: #15803d; color: #fff }
.scroll { overflow-x: auto }
"""


@dataclass(frozen=True, slots=True)
class TableState:
    """A table of the lake with its report, or with the error if there is no report.

    ``is_refused``: the table has a feature that is not supported, which does not count as a failure.
    """

    uri: str
    report: ServiceReport | None = None
    error: str = ""
    is_refused: bool = False

    @property
    def has_failed(self) -> bool:
        """Whether the table could not be examined, or a step failed."""
        return not self.is_refused if self.report is None else bool(self.report.failed)


def make_page(states: Sequence[TableState], when: datetime) -> str:
    """Return the page of a lake at a point in time."""
    reports = [each.report for each in states if each.report is not None]
    due = sum(bool(each.due) for each in reports)
    broken = len(states) - len(reports)
    counts = f"{len(states):,} tables, {due:,} with something due"
    counts += f", {broken:,} that cannot be looked at" if broken else ""
    ordered = sorted(enumerate(states), key=lambda each: _rank(each[1]))
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>Lake: {due} of {len(states)} tables have something due</title><style>{_STYLE}</style></head><body>",
        f'<h1>What is due</h1><p>{counts}.<br><span class="quiet">As of {when:%Y-%m-%d %H:%M:%S %Z}.</span></p>',
        '<div class="scroll"><table><thead>',
        "<tr><th>Table</th><th>Type</th><th>Version</th><th>Due</th><th>Newest instant</th></tr></thead><tbody>",
        *(_make_row(number, each) for number, each in ordered),
        "</tbody></table></div>",
        *(_make_part(number, each) for number, each in ordered),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def _rank(state: TableState) -> tuple[int, str]:
    """Return the sort key of a table: tables that need attention come first."""
    if state.report is None:
        return 0, state.uri
    return (1 if state.report.failed else 2 if state.report.due else 3), state.report.table


def _make_row(number: int, state: TableState) -> str:
    if state.report is None:
        return (
            f'<tr><td><a href="#t{number}">{_quote(state.uri)}</a></td><td></td><td></td>'
            f"<td>{_mark('unknown', 'cannot be looked at')}</td><td></td></tr>"
        )
    report = state.report
    marks = [
        _mark(_STATES[each.state], each.name) for each in report.services if each.state in ("due", "waits", "unknown")
    ]
    cells = (
        f'<a href="#t{number}">{_quote(report.table)}</a>',
        "merge on read" if report.table_type == "MERGE_ON_READ" else "copy on write",
        str(report.version),
        " ".join(marks) or "nothing",
        _quote(report.instant or "none"),
    )
    return f"<tr>{''.join(f'<td>{each}</td>' for each in cells)}</tr>"


def _make_part(number: int, state: TableState) -> str:
    if state.report is None:
        return f'<h2 id="t{number}">{_quote(state.uri)}</h2><p>{_quote(state.error)}</p>'
    report = state.report
    return "\n".join(
        [
            f'<h2 id="t{number}">{_quote(report.table)}</h2><p class="quiet">{_quote(state.uri)}</p>',
            *_make_steps(report),
            '<div class="scroll"><table><thead><tr><th>Service</th><th>State</th><th>Why</th></tr></thead><tbody>',
            *(_make_service(each) for each in report.services),
            "</tbody></table></div>",
        ]
    )


def _make_steps(report: ServiceReport) -> Iterable[str]:
    if report.steps:
        kinds = {"done": "done", "conflict": "waits", "failed": "unknown"}
        items = (f"<li>{_mark(kinds[each.outcome], each.outcome)} {_quote(each.text)}</li>" for each in report.steps)
        yield f"<ul>{''.join(items)}</ul>"


def _make_service(service: DueService) -> str:
    state = _mark(_STATES[service.state], service.state)
    return f'<tr><th>{_quote(service.name)}</th><td>{state}</td><td class="why">{_quote(service.why)}</td></tr>'


def _mark(kind: str, text: str) -> str:
    return f'<span class="mark {kind}">{_quote(text)}</span>'


def _quote(text: str) -> str:
    return html.escape(escape_controls(text))
