"""Random histories of writes, alterations and compactions, against a model that keeps values by the ids of columns."""

from __future__ import annotations

import json
import random
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from hoodie_py.table.schema.history import find_history_file
from hoodie_py.table.snapshot import open_snapshot
from tests.writer.compaction_tables import QUICK

KEYS = [f"k{number}" for number in range(6)]
WIDER = {"int": ["long", "string"], "long": ["string"], "double": ["string"], "string": []}  # alike in one step or two
ARROW = {"int": pa.int32(), "long": pa.int64(), "double": pa.float64(), "string": pa.string()}
NAMES = [f"c{number}" for number in range(5)]


class Model:
    """A table, and the rows and columns that it must have: ``columns`` are [id, name, type], values are kept by id."""

    def __init__(self, base: Path, kind: str, version: int, chooser: random.Random) -> None:
        self.base, self.chooser, self.clock, self.next_id = base, chooser, 0, 10
        self.columns = [[8, "c0", "int"], [9, "c1", "string"]]
        self.rows: dict[str, dict[int, Any]] = {}
        schema = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("c0", pa.int32()), ("c1", pa.string())])
        HoodieTable.create(str(base), schema, record_key="id", ordering="ts", table_type=kind, table_version=version)

    def write(self) -> None:
        self.clock += 1
        rows = []
        for key in self.chooser.sample(KEYS, 3):
            values = {column[0]: self.make_value(column[2]) for column in self.columns}
            self.rows[key] = values
            rows.append({"id": key, "ts": self.clock} | {name: values[number] for number, name, _ in self.columns})
        fields = [(name, ARROW[kind]) for _, name, kind in self.columns]
        schema = pa.schema([("id", pa.string()), ("ts", pa.int64()), *fields])
        HoodieTable.open(self.base).upsert(pa.Table.from_pylist(rows, schema), options=QUICK)

    def make_value(self, kind: str) -> Any:
        number = self.chooser.randint(-99, 99)
        return None if self.chooser.random() < 0.1 else {"double": number / 4, "string": f"t{number}"}.get(kind, number)

    def alter(self) -> None:
        free = [name for name in NAMES if name not in [column[1] for column in self.columns]]
        column = self.chooser.choice(self.columns)
        what = self.chooser.choice(["rename", "drop", "add", "widen", "move"])
        if what == "rename":
            column[1] = self.chooser.choice(free)
        elif what == "drop" and len(self.columns) > 1:
            self.columns.remove(column)
        elif what == "add" and len(self.columns) < 4:
            self.columns.append([self.next_id, self.chooser.choice(free), self.chooser.choice(list(ARROW))])
            self.next_id += 1
        elif what == "widen" and WIDER[column[2]]:
            self.widen(column, self.chooser.choice(WIDER[column[2]]))
        elif what == "move":
            self.chooser.shuffle(self.columns)
        self.commit_columns()

    def widen(self, column: list[Any], kind: str) -> None:
        for row in self.rows.values():
            value = row.get(column[0])
            if value is not None:
                row[column[0]] = str(value) if kind == "string" else value
        column[2] = kind

    def commit_columns(self) -> None:
        """Commit the columns as ALTER TABLE does: a commit without files, and the history."""
        snapshot = open_snapshot(str(self.base))
        time.sleep(0.002)
        instant = datetime.now(UTC).strftime("%Y%m%d%H%M%S%f")[:17]
        folder = self.base / ".hoodie/.schema"
        folder.mkdir(exist_ok=True)
        known = find_history_file(snapshot.timeline)
        meta = [[number, name, "string"] for number, name in enumerate(snapshot.schema.arrow.names[:5])]
        first = [*meta, [6, "id", "string"], [7, "ts", "long"]]
        older = [] if known is None else json.loads((self.base / known).read_text())["schemas"]
        older = older or [make_version(0, [*first, [8, "c0", "int"], [9, "c1", "string"]])]
        latest = make_version(int(instant), [*first, *self.columns])
        columns = [[0, "id", "string"], [0, "ts", "long"], *self.columns]
        avro = [{"name": name, "type": ["null", kind], "default": None} for _, name, kind in columns]
        schema = {"type": "record", "name": "r", "fields": avro}
        extra = {"schema": json.dumps(schema), "latest_schema": json.dumps(latest)}
        body = {"partitionToWriteStats": {}, "extraMetadata": extra, "operationType": "ALTER_SCHEMA"}
        layout2 = snapshot.config.timeline_layout == 2
        name = f"{instant}_{instant}" if layout2 else instant
        action = "deltacommit" if snapshot.config.is_merge_on_read else "commit"
        (folder / f"{name}.schemacommit").write_text(json.dumps({"schemas": [latest, *older]}))
        timeline = self.base / ".hoodie" / ("timeline" if layout2 else "")
        (timeline / f"{name}.{action}").write_text(json.dumps(body))

    def expected(self) -> list[tuple[Any, ...]]:
        rows = [(key, *(values.get(column[0]) for column in self.columns)) for key, values in self.rows.items()]
        return sorted(rows, key=lambda row: row[0])

    def found(self, as_of: str | None = None) -> tuple[list[str], list[tuple[Any, ...]]]:
        table = HoodieTable.open(self.base).scan(as_of=as_of).to_arrow()
        names = [name for name in table.column_names if not name.startswith("_hoodie_") and name != "ts"]
        rows = [tuple(row[name] for name in names) for row in table.to_pylist()]
        return names, sorted(rows, key=lambda row: row[0])


def make_version(version: int, columns: list[list[Any]]) -> dict[str, Any]:
    fields = [{"id": number, "name": name, "optional": True, "type": kind} for number, name, kind in columns]
    return {"max_column_id": 99, "version_id": version, "type": "record", "fields": fields}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("kind", "version"), [("MERGE_ON_READ", 9), ("MERGE_ON_READ", 6), ("COPY_ON_WRITE", 9)])
def test_random_histories(kind: str, version: int, seed: int, tmp_path: Path) -> None:
    chooser = random.Random(f"{kind}{version}{seed}")
    model = Model(tmp_path / "t", kind, version, chooser)
    model.write()
    seen: list[tuple[str, Any]] = []
    for _ in range(9):
        step = chooser.choice(["write", "alter", "alter", "compact"])
        if step == "compact" and kind == "MERGE_ON_READ":
            HoodieTable.open(model.base).compact(options=QUICK)
        elif step == "write":
            model.write()
        else:
            model.alter()
        names, rows = model.found()
        assert names == ["id", *(column[1] for column in model.columns)]
        assert rows == model.expected()
        last = max(open_snapshot(str(model.base)).timeline.list_completed_writes(), key=lambda each: each.request_time)
        seen.append((last.request_time, (names, rows)))
    for instant, state in dict(seen).items():
        assert model.found(instant) == state
