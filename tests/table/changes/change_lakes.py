"""Tables with change data, and what their changes amount to."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from hoodie_py import HoodieTable

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("price", pa.float64())])
MODES = ("OP_KEY_ONLY", "DATA_BEFORE", "DATA_BEFORE_AFTER")
KINDS = [("MERGE_ON_READ", 9), ("MERGE_ON_READ", 8), ("MERGE_ON_READ", 6), ("COPY_ON_WRITE", 9), ("COPY_ON_WRITE", 6)]
ENABLED = "hoodie.table.cdc.enabled"
MODE = "hoodie.table.cdc.supplemental.logging.mode"

Row = Mapping[str, Any]


def row(key: str, ts: int = 1, price: float | None = 1.0, part: str = "p") -> dict[str, Any]:
    return {"id": key, "part": part, "ts": ts, "price": price}


def make(
    place: Path, kind: tuple[str, int] = KINDS[0], mode: str = MODES[2], ordering: str | None = "ts", **properties: str
) -> HoodieTable:
    return HoodieTable.create(
        place, SCHEMA, record_key="id", ordering=ordering, partition_by="part", table_type=kind[0],
        table_version=kind[1], properties={ENABLED: "true", MODE: mode, **properties},
    )  # fmt: skip


def times(table: HoodieTable) -> list[str]:
    """The commits' times that ranges of the table compare."""
    return [
        each.completion_time or each.request_time if table.config.version >= 8 else each.request_time
        for each in table.timeline.select_writes()
    ]


def changes(table: HoodieTable, *span: str, **arguments: Any) -> list[tuple[str, Row | None, Row | None]]:
    """Changes with their images, sorted."""
    rows = table.changes(*span, as_structs=True, **arguments).to_arrow().to_pylist()
    return sorted(((each["op"], each["before"], each["after"]) for each in rows), key=repr)


def count_rows(rows: Iterable[Row]) -> Counter[str]:
    return Counter(json.dumps(_sort_maps(each), sort_keys=True, default=str) for each in rows)


def _sort_maps(value: Any) -> Any:
    """Bring the entries of maps into one order, as Java shuffles them when it rewrites a file."""
    if isinstance(value, dict):
        return {name: _sort_maps(each) for name, each in value.items()}
    if isinstance(value, list):
        items = [_sort_maps(each) for each in value]
        return sorted(items, key=repr) if value and all(isinstance(each, tuple) for each in value) else items
    return [_sort_maps(each) for each in value] if isinstance(value, tuple) else value


def replay(rows: Counter[str], made: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Apply changes to rows, as a consumer does."""
    found = Counter(rows)
    for each in made:
        assert (each["before"] is None) == (each["op"] == "i")
        assert (each["after"] is None) == (each["op"] == "d")
        found.subtract(count_rows(image for image in (each["before"],) if image is not None))
        found.update(count_rows(image for image in (each["after"],) if image is not None))
    assert min(found.values(), default=0) >= 0
    return Counter({text: count for text, count in found.items() if count})
