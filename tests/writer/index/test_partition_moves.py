"""Records of a global index whose partition changes, on a table in which Java Hudi moved some.

Java left the key k1 in two base files of p1: dead in the one, whose log deleted it, and alive in the other.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import RecordMerger
from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.table.snapshot import Snapshot, open_snapshot
from hoodie_py.writer.index.tagging import tag
from hoodie_py.writer.records import TaggedRecords, WriteRecords
from hoodie_py.writer.settings import WriteSettings
from integration.corpus_mergers import Accumulate
from tests.corpus import unpack

GLOBAL = WriteSettings.from_options({"hoodie.index.type": "GLOBAL_SIMPLE"})
STAYING = WriteSettings.from_options(
    {"hoodie.index.type": "GLOBAL_BLOOM", "hoodie.bloom.index.update.partition.path": "false"}
)
P0, P1_OLD, P1_NEW = "750cfa40", "97cb4455", "6b55fce7"
COLUMNS = pa.schema(
    [
        ("id", pa.string()),
        ("name", pa.string()),
        ("price", pa.float64()),
        ("qty", pa.int32()),
        ("ts", pa.int64()),
        ("part", pa.string()),
    ]
)
Row = dict[str, Any]
Place = tuple[str, str | None, bool]


@cache
def _snapshot() -> Snapshot:
    return open_snapshot(unpack("global_index_move_mor_v9", Path(mkdtemp(prefix="moves-"))))


def _tagged(row: Row, settings: WriteSettings = GLOBAL, *, gone: bool = False, **more: Any) -> TaggedRecords:
    table = pa.Table.from_pylist([{"name": "new", "price": 1.0, "qty": 7, **row}], _schema())
    deletes = pa.chunked_array([[gone]])
    records = WriteRecords(table, table.column("id"), table.column("part"), deletes, (table.column("ts"),))
    return tag(_snapshot(), records, settings, **more)


def _schema() -> pa.Schema:
    stored = _snapshot().schema.arrow
    return pa.schema([stored.field(name) for name in COLUMNS.names])


def _places(tagged: TaggedRecords) -> list[Place]:
    records = tagged.records
    assert records.partition_paths is not None
    assert records.deletes is not None
    groups = [None if each is None else each[:8] for each in tagged.file_ids.to_pylist()]
    return list(zip(records.partition_paths.to_pylist(), groups, records.deletes.to_pylist(), strict=True))


def test_a_record_moves_by_a_delete_and_an_insert() -> None:
    tagged = _tagged({"id": "k4", "ts": 20, "part": "p1"})
    assert _places(tagged) == [("p1", None, False), ("p0", P0, True)]
    assert tagged.records.ordering[0].to_pylist() == [20, None]  # commit time orders the delete
    assert tagged.positions.tolist()[0] == -1
    assert tagged.positions.tolist()[1] >= 0
    assert tagged.records.rows.column("name").to_pylist()[0] == "new"


def test_a_record_that_loses_does_not_move() -> None:
    assert len(_tagged({"id": "k4", "ts": 5, "part": "p1"})) == 0


def test_a_record_of_the_same_partition_stays() -> None:
    assert _places(_tagged({"id": "k4", "ts": 5, "part": "p0"})) == [("p0", P0, False)]


def test_a_delete_goes_where_the_record_is() -> None:
    tagged = _tagged({"id": "k4", "ts": 20, "part": "p1"}, gone=True)
    assert _places(tagged) == [("p0", P0, True)]
    assert tagged.records.ordering[0].to_pylist() == [20]


def test_records_that_do_not_move_go_to_their_old_partition() -> None:
    tagged = _tagged({"id": "k4", "ts": 20, "part": "p1"}, STAYING)
    assert _places(tagged) == [("p0", P0, False)]
    assert tagged.records.rows.column("part").to_pylist() == ["p1"]


def test_a_key_that_a_log_deleted_elsewhere_is_found_where_it_lives() -> None:
    assert _places(_tagged({"id": "k1", "ts": 40, "part": "p1"})) == [("p1", P1_NEW, False)]
    assert _places(_tagged({"id": "k1", "ts": 40, "part": "p1"}, WriteSettings.from_options({}))) == [
        ("p1", P1_NEW, False)
    ]
    assert _places(_tagged({"id": "k1", "ts": 40, "part": "p0"})) == [("p0", None, False), ("p1", P1_NEW, True)]


def test_a_key_that_lives_nowhere_is_new() -> None:
    assert _places(_tagged({"id": "k2", "ts": 5, "part": "p-new"}))[0][1] is not None
    assert _places(_tagged({"id": "k9", "ts": 5, "part": "p0"})) == [("p0", None, False)]


def test_a_merger_decides_between_partitions() -> None:
    row = {"id": "k4", "ts": 1, "part": "p1"}
    tagged = _tagged(row, merger=Accumulate, partition_paths=lambda rows: rows.column("part"))
    assert _places(tagged) == [("p1", None, False), ("p0", P0, True)]
    assert tagged.records.rows.column("qty").to_pylist()[0] == 7 + 4
    home = _tagged(row, merger=Accumulate, partition_paths=lambda rows: pa.chunked_array([["p0"] * rows.num_rows]))
    assert _places(home) == [("p0", P0, False)]
    with pytest.raises(UnsupportedFeatureError, match="key generator"):
        _tagged(row, merger=Accumulate)


def test_a_merger_may_delete_the_record_at_its_old_place() -> None:
    tagged = _tagged({"id": "k4", "ts": 1, "qty": 200, "part": "p1"}, merger=Accumulate)
    assert _places(tagged) == [("p0", P0, True)]


def test_a_merger_may_keep_what_the_table_has() -> None:
    class First(RecordMerger):
        strategy_id = "4d6f1b0a-0000-4000-8000-000000000002"

        def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
            return older

    assert len(_tagged({"id": "k4", "ts": 99, "part": "p1"}, merger=First)) == 0
