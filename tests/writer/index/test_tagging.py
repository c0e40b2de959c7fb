"""Where records belong: keys of reference tables find their file groups, and random batches those of a dict."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie_py import HoodieTable, HoodieWarning, RecordMerger, register_merger
from hoodie_py.errors import ConflictError, InvalidQueryError, UnsupportedFeatureError
from hoodie_py.table.snapshot import Snapshot, open_snapshot
from hoodie_py.writer.index import key_lookup
from hoodie_py.writer.index.tagging import tag
from hoodie_py.writer.records import TaggedRecords, WriteRecords
from hoodie_py.writer.settings import WriteSettings
from integration.corpus_mergers import CORPUS_MERGERS, Accumulate
from tests.corpus import corpus_names, load_case, unpack
from tests.writer.compaction_tables import writable

UNREADABLE = ("nometa_", "blocks_hfile", "old15_blocks_hfile", "blocks_mixed_mor_v6")
NOT_HERE = (
    "clustering_pending_", "null_ordering_bigint_", "custom_cancel_deviations_", "partition_metafile_",
    "lance_", "orc_",  # not written, and positions are looked up in Parquet here
)  # fmt: skip
TABLES = [name for name in corpus_names() if not name.startswith((*UNREADABLE, *NOT_HERE))]
SIMPLE = WriteSettings.from_options({})
GLOBAL = WriteSettings.from_options({"hoodie.index.type": "GLOBAL_SIMPLE"})
BUCKETS = WriteSettings.from_options({"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"})


@pytest.fixture(autouse=True)
def mergers(no_mergers: None) -> None:
    for merger in CORPUS_MERGERS.values():
        register_merger(merger)
    warnings.simplefilter("ignore", HoodieWarning)  # a torn block in one of the tables


def _column(values: list[str]) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values, pa.string())])


def _records(keys: list[str], partitions: list[str] | None) -> WriteRecords:
    return WriteRecords(pa.table({}), _column(keys), None if partitions is None else _column(partitions))


def _stored(base: Path) -> pa.Table:
    """Keys, partitions and file ids of all rows."""
    meta = ["_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name"]
    table = HoodieTable.open(base).scan(columns=meta).to_arrow()
    ids = [name.split("_")[0] for name in table.column(2).to_pylist()]
    return pa.table({"key": table.column(0), "partition": table.column(1), "file_id": pa.array(ids, pa.string())})


def _check_positions(snapshot: Snapshot, tagged: TaggedRecords) -> None:
    """The row that a position names has the key, and is of the base file that the instant names."""
    bases = {
        (each.partition_path, each.file_id): each.base_file
        for each in snapshot.view.list_slices()
        if each.base_file is not None
    }
    paths = tagged.records.partition_paths
    assert paths is not None
    keys: dict[str, list[str]] = {}
    for at in np.flatnonzero(tagged.positions >= 0).tolist():
        base = bases[paths[at].as_py(), tagged.file_ids[at].as_py()]
        assert tagged.base_instants[at].as_py() == base.instant
        if base.path not in keys:
            local = snapshot.files.local_path(base.path)
            keys[base.path] = pq.read_table(local, columns=["_hoodie_record_key"]).column(0).to_pylist()
        assert keys[base.path][int(tagged.positions[at])] == tagged.records.keys[at].as_py()


@pytest.mark.parametrize("name", TABLES)
def test_every_key_finds_the_group_that_holds_it(name: str, tmp_path: Path) -> None:
    base = unpack(name, tmp_path)
    stored, snapshot = _stored(base), open_snapshot(base)
    tagged = tag(snapshot, WriteRecords(pa.table({}), stored.column(0), stored.column(1)), SIMPLE)
    if not name.startswith("duplicate_keys_"):  # whose records come once for each row
        assert tagged.file_ids.to_pylist() == stored.column(2).to_pylist()
    assert set(zip(tagged.records.keys.to_pylist(), tagged.file_ids.to_pylist(), strict=True)) == set(
        zip(stored.column(0).to_pylist(), stored.column(2).to_pylist(), strict=True)
    )
    _check_positions(snapshot, tagged)
    if len(set(stored.column(0).to_pylist())) == stored.num_rows:
        everywhere = tag(snapshot, WriteRecords(pa.table({}), stored.column(0), stored.column(1)), GLOBAL)
        assert everywhere.file_ids.to_pylist() == stored.column(2).to_pylist()


@pytest.mark.parametrize("name", [each for each in TABLES if each.startswith("logonly_bucket_")])
def test_buckets_are_where_java_put_keys(name: str, tmp_path: Path) -> None:
    base = unpack(name, tmp_path)
    stored, snapshot = _stored(base), open_snapshot(base)
    tagged = tag(snapshot, WriteRecords(pa.table({}), stored.column(0), stored.column(1)), BUCKETS)
    assert tagged.file_ids.to_pylist() == stored.column(2).to_pylist()


RANDOM = ("basic_mor_v9_part", "event_time_deletes_mor_v6", "many_row_groups_mor_v9", "urlenc_partitions_mor_v9")


@cache
def _table(name: str) -> tuple[Path, dict[tuple[str, str], str]]:
    base = unpack(name, Path(mkdtemp(prefix="tagging-")))
    stored = _stored(base).to_pylist()
    return base, {(row["partition"], row["key"]): row["file_id"] for row in stored}


@pytest.mark.parametrize("name", RANDOM)
@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM"])
@given(data=st.data())
@settings(max_examples=25)
def test_random_batches_find_what_a_dict_finds(name: str, index: str, data: st.DataObject) -> None:
    base, places = _table(name)
    partitions = sorted({partition for partition, _ in places})
    known = sorted(key for _, key in places)
    batch = data.draw(
        st.lists(
            st.tuples(
                st.sampled_from([*partitions, "elsewhere"]),
                st.sampled_from([*known, "", "~"]) | st.text("ab0", max_size=3),
            )
        )
    )
    deleted = _base_keys(base)
    batch = [each for each in batch if each in places or each not in deleted]  # a log may have deleted it
    records = _records([key for _, key in batch], [partition for partition, _ in batch])
    tagged = tag(open_snapshot(base), records, WriteSettings.from_options({"hoodie.index.type": index}))
    assert tagged.file_ids.to_pylist() == [places.get(each) for each in batch]


@cache
def _base_keys(base: Path) -> frozenset[tuple[str, str]]:
    found = HoodieTable.open(base).scan(
        columns=["_hoodie_partition_path", "_hoodie_record_key"], query_type="read_optimized"
    )
    return frozenset((row["_hoodie_partition_path"], row["_hoodie_record_key"]) for row in found.to_arrow().to_pylist())


@pytest.mark.parametrize("memory", [None, "16"])
def test_records_are_looked_up_in_passes(memory: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    base, places = _table("basic_mor_v9_part")
    monkeypatch.setattr(key_lookup.KeyLookup, "keys_at_once", property(lambda _: 3))
    if memory is None:
        monkeypatch.setattr(key_lookup, "_AT_ONCE", 2)
        monkeypatch.setattr(key_lookup, "_TIMES", 1)
    batch = [*places, ("p0", "none")]
    records = _records([key for _, key in batch], [partition for partition, _ in batch])
    tagged = tag(open_snapshot(base), records, WriteSettings.from_options({"hoodie.memory.merge.max.size": memory}))
    assert tagged.file_ids.to_pylist() == [*places.values(), None]
    _check_positions(open_snapshot(base), tagged)


def test_bare_keys_come_once_for_each_place(tmp_path: Path) -> None:
    base, places = _table("basic_mor_v9_part")
    keys = [*dict.fromkeys(key for _, key in places), "none"]
    tagged = tag(open_snapshot(base), _records(keys, None), SIMPLE)
    assert tagged.records.partition_paths is not None
    pairs = zip(tagged.records.partition_paths.to_pylist(), tagged.records.keys.to_pylist(), strict=True)
    assert dict(zip(pairs, tagged.file_ids.to_pylist(), strict=True)) == places


def test_a_key_in_two_groups_goes_to_both(tmp_path: Path) -> None:
    base = writable("basic_cow_v9_part", tmp_path)
    snapshot = open_snapshot(base)
    first = next(each for each in snapshot.view.list_slices() if each.base_file is not None)
    assert first.base_file is not None
    double = first.base_file.path.replace(first.file_id, "77777777" + first.file_id[8:])
    (base / double).write_bytes((base / first.base_file.path).read_bytes())
    row = next(each for each in _stored(base).to_pylist() if each["file_id"] == first.file_id)
    both = sorted([first.file_id, "77777777" + first.file_id[8:]])
    for index, partitions in ((SIMPLE, [row["partition"]] * 2), (GLOBAL, [row["partition"]] * 2), (SIMPLE, None)):
        tagged = tag(open_snapshot(base), _records([row["key"], "none"], partitions), index)
        assert sorted(filter(None, tagged.file_ids.to_pylist())) == both
        assert tagged.records.keys.to_pylist()[:2] == [row["key"]] * 2
        assert len(tagged) == (3 if partitions else 2)
        _check_positions(open_snapshot(base), tagged)


def test_groups_of_a_pending_clustering_take_no_updates(tmp_path: Path) -> None:
    base = unpack("clustering_pending_cow_v9", tmp_path)
    stored = _stored(base)
    with pytest.raises(ConflictError, match="pending clustering"):
        tag(open_snapshot(base), WriteRecords(pa.table({}), stored.column(0), stored.column(1)), SIMPLE)
    new = WriteRecords(pa.table({}), _column(["new"] * stored.num_rows), stored.column(1))
    assert tag(open_snapshot(base), new, SIMPLE).file_ids.null_count == stored.num_rows


def test_a_new_bucket_gets_one_new_group_a_partition(tmp_path: Path) -> None:
    base = unpack("logonly_bucket_mor_v9", tmp_path)
    keys = [str(number) for number in range(20)]
    tagged = tag(open_snapshot(base), _records(keys * 2, ["p0"] * 20 + ["fresh"] * 20), BUCKETS)
    fresh = tagged.file_ids.to_pylist()[20:]
    assert {each[:8] for each in fresh} == {"00000000", "00000001"}
    assert len(set(fresh)) == 2
    assert not set(fresh) & set(tagged.file_ids.to_pylist()[:20])


def test_a_wrong_bucket_index_is_refused(tmp_path: Path) -> None:
    one = WriteSettings.from_options({"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"})
    base = unpack("logonly_bucket_mor_v9", tmp_path / "buckets")
    partitions = _stored(base).column("partition").to_pylist()
    with pytest.raises(InvalidQueryError, match="none of the 1 buckets"):
        tag(open_snapshot(base), _records(["1"] * len(partitions), partitions), one)
    other, places = _table("basic_mor_v9_part")
    with pytest.raises(InvalidQueryError, match="none of the 2 buckets"):
        tag(open_snapshot(other), _records(["1"], [next(iter(places))[0]]), BUCKETS)


@pytest.mark.parametrize("name", [each for each in TABLES if load_case(each)["name"].startswith("empty_mor")])
def test_an_empty_table_has_no_places(name: str, tmp_path: Path) -> None:
    tagged = tag(open_snapshot(unpack(name, tmp_path)), _records(["a", "b"], ["p0", "p1"]), SIMPLE)
    assert tagged.file_ids.null_count == 2
    assert (tagged.positions == -1).all()
    assert len(tag(open_snapshot(tmp_path / load_case(name)["name"]), _records([], []), GLOBAL)) == 0


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
    # Java left the key k1 in two base files of p1: dead in the one, whose log deleted it, and alive in the other.
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
