"""Where a table's columns come from, beyond what the reference tables show (test_view_corpus)."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_py.errors import CorruptFileError, InvalidTableError
from hoodie_py.files import TableFiles
from hoodie_py.formats.names import META_FIELDS
from hoodie_py.table.schema.resolver import read_file_schema, resolve_schema
from tests.corpus import corpus_names
from tests.table.tables import make_table, open_view

T1, T2, T3 = (f"2026010100000{number}000" for number in range(1, 4))
NO_META = {"hoodie.populate.meta.fields": "false"}


def avro(*columns: Any, **defaults: Any) -> str:
    kinds = [column if isinstance(column, tuple) else (column, "string") for column in columns]
    made = [
        {"name": name, "type": kind, "default": defaults[name]} if name in defaults
        else {"name": name, "type": ["null", kind], "default": None}
        for name, kind in kinds
    ]  # fmt: skip
    return json.dumps({"type": "record", "name": "r", "fields": made})


def commit(request: str, schema: str | None, path: str | None = None, **extra: str) -> dict[str, bytes]:
    stats = {"": [{"fileId": "a-0", "path": path, "numWrites": 1}]} if path else {}
    texts = {**({"schema": schema} if schema else {}), **extra}
    body = json.dumps({"partitionToWriteStats": stats, "extraMetadata": texts}).encode()
    return {f".hoodie/timeline/{request}_{request}.commit": body}


def parquet(schema: pa.Schema) -> bytes:
    out = io.BytesIO()
    pq.write_table(schema.empty_table(), out)
    return out.getvalue()


def columns(root: Path, as_of: str | None = None) -> list[str]:
    return list(resolve_schema(open_view(root).timeline, as_of).data_columns)


def test_newest_commit_with_a_schema_decides(tmp_path: Path):
    make_table(tmp_path, {**commit(T1, avro("a")), **commit(T2, avro("a", "b")), **commit(T3, None)}, **NO_META)
    assert columns(tmp_path) == ["a", "b"]
    assert columns(tmp_path, T2) == ["a", "b"]
    assert columns(tmp_path, T1) == ["a"]
    assert resolve_schema(open_view(tmp_path).timeline).instant == T2


def test_create_schema_where_no_commit_has_one(tmp_path: Path):
    text = avro("a").replace(":", "\\:")
    root = make_table(tmp_path, commit(T1, None), **{"hoodie.table.create.schema": text})
    schema = resolve_schema(open_view(root).timeline)
    assert schema.arrow.names == [*META_FIELDS, "a"]
    assert schema.instant is None


def test_stored_meta_columns_are_put_in_front_once(tmp_path: Path):
    root = make_table(tmp_path, commit(T1, avro("a", *META_FIELDS, "_hoodie_operation")))
    assert resolve_schema(open_view(root).timeline).arrow.names == [*META_FIELDS, "a"]


def test_tables_without_meta_fields_have_no_meta_columns(tmp_path: Path):
    root = make_table(tmp_path, commit(T1, avro("a", *META_FIELDS)), **NO_META)
    assert resolve_schema(open_view(root).timeline).arrow.names == ["a"]


def test_data_file_where_nothing_else_tells(tmp_path: Path):
    name = f"a-0_0-0-0_{T1}.parquet"
    stored = pa.schema({"_hoodie_commit_time": pa.string(), "x": pa.int16(), "t": pa.timestamp("ms", "UTC")})
    root = make_table(tmp_path, {**commit(T1, None, name), name: parquet(stored)})
    schema = resolve_schema(open_view(root).timeline)
    assert schema.arrow.names == [*META_FIELDS, "x", "t"]
    assert schema.arrow.field("x").type == pa.int32()
    assert schema.arrow.field("t").type == pa.timestamp("us", "UTC")


def test_operation_column_is_found_in_data_files(tmp_path: Path):
    name = f"a-0_0-0-0_{T1}.parquet"
    stored = pa.schema({"_hoodie_operation": pa.string(), "a": pa.string()})
    root = make_table(tmp_path, {**commit(T1, avro("a"), name), name: parquet(stored)})
    assert resolve_schema(open_view(root).timeline).arrow.names == [*META_FIELDS, "_hoodie_operation", "a"]


def test_data_files_that_are_gone_are_passed_over(tmp_path: Path):
    old, new = f"a-0_0-0-0_{T1}.parquet", f"a-0_0-0-0_{T2}.parquet"
    files = {**commit(T1, None, old), **commit(T2, None, new), old: parquet(pa.schema({"a": pa.string()}))}
    assert columns(make_table(tmp_path, files)) == ["a"]


def test_bootstrapped_files_have_no_columns_of_their_own(tmp_path: Path):
    skeleton, name = "00000000000001", "a-0_0-0-0_00000000000001.parquet"
    files = {**commit(skeleton, None, name), name: parquet(pa.schema([(each, pa.string()) for each in META_FIELDS]))}
    with pytest.raises(InvalidTableError, match="columns"):
        resolve_schema(open_view(make_table(tmp_path / "a", files)).timeline)
    whole = f"b-0_0-0-0_{T1}.parquet"
    more = {**files, **commit(T1, None, whole), whole: parquet(pa.schema({"a": pa.string()}))}
    assert columns(make_table(tmp_path / "b", more)) == ["a"]


def test_a_table_that_nobody_wrote_to_has_no_columns(tmp_path: Path):
    for name, files in {"new": {}, "empty": commit(T1, None)}.items():
        timeline = open_view(make_table(tmp_path / name, files)).timeline
        assert resolve_schema(timeline).arrow == pa.schema([])
        assert resolve_schema(timeline, T1).arrow == pa.schema([])


def test_nothing_tells_the_columns_of_rows(tmp_path: Path):
    gone = make_table(tmp_path, commit(T1, None, f"a-0_0-0-0_{T1}.parquet"))
    with pytest.raises(InvalidTableError, match="columns are unknown"):
        resolve_schema(open_view(gone).timeline)


def test_damaged_data_file_matters_only_where_nothing_else_tells(tmp_path: Path):
    name = f"a-0_0-0-0_{T1}.parquet"
    known = make_table(tmp_path / "known", {**commit(T1, avro("a"), name), name: b"PAR1 nonsense"})
    assert columns(known) == ["a"]
    unknown = make_table(tmp_path / "unknown", {**commit(T1, None, name), name: b"PAR1 nonsense"})
    with pytest.raises(CorruptFileError) as caught:
        columns(unknown)
    assert caught.value.where["path"] == name


def test_paths_outside_the_table_are_refused(tmp_path: Path):
    timeline = open_view(make_table(tmp_path, commit(T1, avro("a"), "../a-0_0-0-0_1.parquet"))).timeline
    with pytest.raises(InvalidTableError):
        resolve_schema(timeline)


def test_damaged_schema_names_the_instant(tmp_path: Path):
    timeline = open_view(make_table(tmp_path, commit(T1, "{not json"), **NO_META)).timeline
    with pytest.raises(CorruptFileError) as caught:
        resolve_schema(timeline)
    assert caught.value.where["instant"] == T1


def test_defaults_are_those_of_the_tables_columns(tmp_path: Path):
    text = avro("a", ("b", "int"), b=7)
    root = make_table(tmp_path, commit(T1, text), **NO_META)
    assert dict(resolve_schema(open_view(root).timeline).defaults) == {"b": 7}


def test_dropped_partition_columns_come_last(tmp_path: Path):
    drop = {"hoodie.table.partition.fields": "p,q", "hoodie.datasource.write.drop.partition.columns": "true"}
    create = {"hoodie.table.create.schema": avro("a", ("q", "int")).replace(":", "\\:")}
    root = make_table(tmp_path, commit(T1, avro("a")), **drop, **create, **NO_META)
    found = [(field.name, str(field.type)) for field in resolve_schema(open_view(root).timeline).arrow]
    assert found == [("a", "string"), ("p", "string"), ("q", "int32")]


def test_time_fields_of_custom_generators_keep_their_type(tmp_path: Path):
    custom = {"hoodie.table.partition.fields": "p:SIMPLE,t:TIMESTAMP", "hoodie.table.keygenerator.type": "CUSTOM"}
    root = make_table(tmp_path, commit(T1, avro(("p", "int"), ("t", "long"))), **custom, **NO_META)
    schema = resolve_schema(open_view(root).timeline).arrow
    assert [str(field.type) for field in schema] == ["int32", "int64"]


def test_log_files_tell_their_schema(corpus: Callable[[str], Path]):
    root = corpus("logonly_bucket_mor_v9")
    files = TableFiles.open(str(root))
    logs = [log.path for each in open_view(root).list_slices() for log in each.log_files]
    schemas = [schema for log in logs if (schema := read_file_schema(files, log)) is not None]
    assert schemas
    assert all(schema.names[:5] == list(META_FIELDS) for schema in schemas)
    assert read_file_schema(files, ".hoodie/hoodie.properties") is None


@pytest.mark.parametrize("name", corpus_names())
def test_only_altered_reference_tables_match_by_id(name: str, corpus: Callable[[str], Path]):
    view = open_view(corpus(name))
    assert (resolve_schema(view.timeline).mappings is not None) is name.startswith("schema_on_read")
