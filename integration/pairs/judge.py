"""What must hold after a pair: the rows of one order or the other, indexes that do not lie, a table that goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hoodie_py import HoodieError, HoodieTable
from hoodie_py.writer.pipeline.local_engine import LocalEngine
from integration.crash.operations import WRITES
from integration.crash.stores import Place, files_at, open_table
from integration.pairs.operations import ADDED, Operation, Turn
from integration.pairs.tables import SCHEMA, Rows, Values, rows_of
from integration.pairs.windows import DONE as AT_END

OK = "done"
REFUSALS = ("ConflictError", "InvalidQueryError", "UnsupportedFeatureError")
_READERS_MAY_SAY = (*REFUSALS, "FileMissingError", "InvalidTableError")
_UNSKIPPED = {"hoodie.metadata.enable": "false", "hoodie.enable.data.skipping": "false"}
_RECOVERY = ("failed writes", "pending plans", "index builds")
_LAST_TS = 99


@dataclass(frozen=True, slots=True)
class Answer:
    """What an operation said: "done" or the error's name and text; what it found, where it only reads. ``kinds`` are
    the names of all classes of the error.
    """

    outcome: str
    text: str = ""
    found: Any = None
    kinds: frozenset[str] = frozenset()

    @property
    def refused(self) -> bool:
        return self.outcome != OK


@dataclass(frozen=True, slots=True)
class Verdict:
    """The rows of a table, and what is wrong with it whatever was done."""

    rows: Rows
    problems: tuple[str, ...] = ()


def allowed_rows(operations: Sequence[Operation], turns: Sequence[Turn], answers: Sequence[Answer]) -> list[Rows]:
    """Return the rows that there may be: of either order of what was done."""
    done = [at for at, answer in enumerate(answers) if not answer.refused]
    found: list[Rows] = []
    for order in (done, done[::-1]):
        rows = turns[0].prepared.rows
        for at in order:
            rows = operations[at].after(rows, turns[at])
        if rows not in found:
            found.append(rows)
    return found


def problems_of_answers(
    operations: Sequence[Operation], turns: Sequence[Turn], answers: Sequence[Answer], window: str
) -> list[str]:
    """Return what is wrong with what the operations said: an error that is no refusal, rows that never were."""
    found = []
    for at, (operation, answer) in enumerate(zip(operations, answers, strict=True)):
        other, about = operations[1 - at], f"{operation.name} says"
        before = turns[0].prepared.rows
        if answer.refused:
            may = _READERS_MAY_SAY if operation.reads and other.undoes else REFUSALS
            if answer.kinds.isdisjoint(may):
                found.append(f"{about} {answer.outcome}: {answer.text}")
        elif operation.name == "verify":
            found += [f"{about} {each}" for each in answer.found]
        elif operation.reads and not (other.between and window != AT_END):
            after = other.after(before, turns[1 - at])
            states = [before, after] if not answers[1 - at].refused else [before]
            if at == 1 and window == AT_END and not answers[0].refused:
                states = [after]
            found += (
                [] if _is_one_of(answer.found, states, operation) else [f"{about} rows that never were: {answer.found}"]
            )
    return found


def _is_one_of(found: Rows, states: list[Rows], operation: Operation) -> bool:
    if operation.name != "follow":
        return found in states
    # Deletes do not come with it, so there may be rows of the state before as well.
    return any(
        all(found.get(place) == row for place, row in state.items())
        and all(row == states[0].get(place) or row == state.get(place) for place, row in found.items())
        for state in states
    )


def judge(place: Place, options: Mapping[str, str], *, twice: bool) -> Verdict:
    """Look at a table, write to it once more, compact it, and return its first rows and what was wrong; ``twice``:
    verify it after that, too, which takes half of the time.
    """
    table = open_table(files_at(place))
    rows = rows_of(table.scan().to_arrow())
    if any(each.action == "clean" for each in table.timeline.select_pending()):
        table.clean(100, options)  # the metadata table learns what a clean removed once that is complete
    found = [*_look(open_table(files_at(place)), rows)]
    try:
        found += _go_on(place, rows, options, twice=twice)
    except HoodieError as error:
        found.append(f"what follows fails: {type(error).__name__} {error}")
    return Verdict(rows, tuple(found))


def _go_on(place: Place, rows: Rows, options: Mapping[str, str], *, twice: bool) -> Iterator[str]:
    table = open_table(files_at(place))
    after = {**rows, **_write_once_more(table, rows, options)}
    if table.config.is_merge_on_read:
        yield from _differences("after one more write", rows_of(table.scan().to_arrow()), after)
        table.compact(LocalEngine(1), options=options)
    report = open_table(files_at(place)).services(run=True, options=options, only=_RECOVERY)
    yield from (f"services: {each}" for each in report.steps if each.outcome == "failed")
    table = open_table(files_at(place))
    pending = [str(each) for each in table.timeline.select_pending() if each.action in (*WRITES, "rollback", "restore")]
    if pending:
        yield f"still pending: {pending}"
    yield from _differences("at last", rows_of(table.scan().to_arrow()), after)
    if twice:
        yield from (f"at last verify says: {each}" for each in table.verify(data=False).findings)


def _look(table: HoodieTable, rows: Rows) -> Iterator[str]:
    twice = [row for row in rows.values() if row[0] < 0]
    if twice:
        yield f"a key is there twice: {twice}"
    yield from _differences("by folders", rows_of(table.scan(options=_UNSKIPPED).to_arrow()), rows)
    for each in table.verify().findings:
        yield f"verify says: {each}"
    for text, matches in _list_filters(rows):
        expected = {place: row for place, row in rows.items() if matches(place, row)}
        yield from _differences(f"by {text}", rows_of(table.scan(filter=text).to_arrow()), expected)


def _differences(what: str, found: Rows, expected: Rows) -> Iterator[str]:
    places = [place for place in {*found, *expected} if found.get(place) != expected.get(place)]
    if places:
        yield f"{what} there are other rows: " + "; ".join(
            f"{place} is {found.get(place)}, not {expected.get(place)}" for place in sorted(places)
        )


def _list_filters(rows: Rows) -> Iterator[tuple[str, Callable[[tuple[str, str], Values], bool]]]:
    """Return filters that ask each index, with what they mean: of the newest row, and of all that are new."""
    if not rows:
        return
    (_, key), (_, name, qty) = max(rows.items(), key=lambda each: each[1])
    yield f"id = '{key}'", lambda place, _: place[1] == key
    yield f"name = '{name}'", lambda _, row: row[1] == name
    yield f"upper(name) = '{name.upper()}'", lambda _, row: row[1].upper() == name.upper()
    yield f"qty = {qty} and ts >= 4", lambda _, row: row[2] == qty and row[0] >= 4


def _write_once_more(table: HoodieTable, rows: Rows, options: Mapping[str, str]) -> Rows:
    """Write all rows anew, by the index of keys where there is one, and a new one."""
    places = [*rows, ("p0", "last")]
    data: list[dict[str, Any]] = [
        {"id": key, "part": part, "ts": _LAST_TS, "name": f"{key}-last", "qty": 1} for part, key in places
    ]
    indexed = "record_index" in table.config.metadata_partitions
    kind = {"hoodie.index.type": "RECORD_INDEX" if indexed else "SIMPLE"}
    written = pa.Table.from_pylist(data, SCHEMA)
    for each in ADDED:
        if each.name in table.schema.names:
            written = written.append_column(each, pa.nulls(len(written), each.type))
    table.upsert(written, {**options, **kind})
    return rows_of(written)
