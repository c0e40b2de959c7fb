"""What must hold of a table after a run, by the journals: every acknowledged write is there once, no refused one is."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hoodie_py import ConflictError, HoodieTable
from integration.together.journal import Attempt
from integration.together.worker import DONE, REFUSED, SHARED, UNKNOWN, partition_of

_SETTLED_AFTER = 30.0


def judge(
    uri: str, storage_options: Mapping[str, Any], options: Mapping[str, str], attempts: Sequence[Attempt]
) -> list[str]:
    """Look at the table as it was left, then after failed writes are rolled back and all services ran; return what is
    wrong.
    """
    found: list[str] = []
    table = HoodieTable.open(uri, storage_options)
    first = _read(table)
    found += [f"as it was left: {each}" for each in _compare(first, attempts)]
    _settle(table, options)
    table = HoodieTable.open(uri, storage_options)
    second = _read(table)
    if Counter(map(_to_pair, first)) != Counter(map(_to_pair, second)):
        found.append("the rows changed when failed writes were rolled back and services ran")
        found += [f"after that: {each}" for each in _compare(second, attempts)]
    pending = [str(each) for each in table.timeline.select_pending() if each.action != "indexing"]
    if pending:
        found.append(f"still pending: {pending[:5]}")
    report = table.verify()
    if not report.is_right:
        found.append(f"verify: {report}"[:1500])
    listed = table.scan(["id", "write"], options={"hoodie.metadata.enable": "false"}).to_arrow().to_pylist()
    if Counter(map(_to_pair, listed)) != Counter(map(_to_pair, second)):
        found.append("folders have other rows than the metadata table")
    return found


def _read(table: HoodieTable) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.scan(["id", "write", "part"]).to_arrow().to_pylist()
    return rows


def _to_pair(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["id"], row["write"]


def _settle(table: HoodieTable, options: Mapping[str, str]) -> None:
    deadline = time.monotonic() + _SETTLED_AFTER
    while True:
        try:
            table.refresh().services(run=True, options=options)
            if table.config.is_merge_on_read:
                table.refresh().compact(options=options)
        except ConflictError:
            if time.monotonic() > deadline:
                raise
        else:
            if not list(table.refresh().timeline.select_pending()) or time.monotonic() > deadline:
                return
        time.sleep(0.5)


def _compare(rows: Sequence[Mapping[str, Any]], attempts: Sequence[Attempt]) -> Iterator[str]:
    twice = [key for key, count in Counter(row["id"] for row in rows).items() if count > 1]
    if twice:
        yield f"there twice: {twice[:5]}"
    there = {row["id"]: row["write"] for row in rows}
    moved = [row["id"] for row in rows if row["part"] != partition_of(row["id"])]
    if moved:
        yield f"in another partition: {moved[:5]}"
    by_name = {each.name: each for each in attempts}
    for key, write in there.items():
        attempt = by_name.get(write)
        if attempt is None or key not in attempt.keys:
            yield f"{key} has the value of a write that never was: {write}"
        elif attempt.end == REFUSED:
            yield f"{key} has the value of {write}, which was refused"
    allowed = _list_allowed(attempts)
    for key, ends in allowed.items():
        if there.get(key) not in ends:
            yield f"{key} has {there.get(key)}, not {' or '.join(map(str, ends))}"
    yield from _find_halves(there, attempts)


def _list_allowed(attempts: Sequence[Attempt]) -> dict[str, list[str | None]]:
    """Return which writes a row may have, by key; None where the row may be missing."""
    allowed: dict[str, list[str | None]] = defaultdict(lambda: [None])
    for each in attempts:
        for key in each.keys:
            if key in SHARED:
                continue
            value = None if each.kind == "delete" else each.name
            if each.end == DONE:
                allowed[key] = [value]
            elif each.end == UNKNOWN:
                allowed[key] = [*allowed[key], value]
    for key in SHARED:
        known = [each for each in attempts if key in each.keys and each.end == DONE]
        last = max((each.ts for each in known), default=0)
        maybe = [each.name for each in attempts if key in each.keys and each.end == UNKNOWN and each.ts > last]
        allowed[key] = [next((each.name for each in known if each.ts == last), None), *maybe]
    return dict(allowed)


def _find_halves(there: Mapping[str, str], attempts: Sequence[Attempt]) -> Iterator[str]:
    """Find writes of which a part is there; a write of unknown end is the last one of its rows."""
    for each in attempts:
        own = [key for key in each.keys if key not in SHARED]
        if each.end == UNKNOWN and own and each.kind != "delete":
            have = [key for key in own if there.get(key) == each.name]
            if have and len(have) != len(own):
                yield f"{each.name} is there by half: {len(have)} of {len(own)} rows"
