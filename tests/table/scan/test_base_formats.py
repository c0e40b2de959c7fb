"""Tables whose base files are Lance or ORC files, or of several formats."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from hoodie_py import HoodieTable, UnsupportedFeatureError
from hoodie_py.reader.history import trace_record_history
from tests.corpus import case_folder, load_case, unpack

LANCE, ORC = "lance_types_mor_v9", "orc_types_mor_v9"
TABLES = (LANCE, ORC, "orc_types_cow_v6")


def sort(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(maps_as_pydicts="strict"), key=lambda row: row["_hoodie_record_key"])


def answer(name: str, query: str) -> pa.Table:
    return pq.read_table(case_folder(name) / "expected" / f"{query}.parquet")


@pytest.mark.parametrize("name", TABLES)
def test_tables_of_java_have_its_rows_and_types(corpus: Callable[[str], Path], name: str) -> None:
    scan = HoodieTable.open(corpus(name)).scan()
    found, want = scan.to_arrow(), answer(name, "snapshot")
    assert sort(found) == sort(want)
    assert [field.type.id for field in found.schema] == [field.type.id for field in want.schema]
    assert scan.count() == len(want)


@pytest.mark.parametrize("name", TABLES)
def test_projections_filters_and_limits(corpus: Callable[[str], Path], name: str) -> None:
    table = HoodieTable.open(corpus(name))
    rows = sort(answer(name, "snapshot"))
    for condition, passes in {
        "i < -20": lambda row: row["i"] is not None and row["i"] < -20,
        "_hoodie_record_key = 'k2'": lambda row: row["id"] == "k2",
        "_hoodie_record_key = 'k2x'": lambda row: False,
        "part = 'a' and s is null": lambda row: row["part"] == "a" and row["s"] is None,
    }.items():
        found = table.scan(columns=["st", "id"], filter=condition).to_arrow()
        want = [{"st": row["st"], "id": row["id"]} for row in rows if passes(row)]
        assert sorted(found.to_pylist(), key=lambda row: row["id"]) == want, condition
    assert len(table.scan(limit=3).to_arrow()) == 3


@pytest.mark.parametrize("name", TABLES)
def test_tasks_are_read_elsewhere(corpus: Callable[[str], Path], name: str) -> None:
    tasks = [pickle.loads(pickle.dumps(task)) for task in HoodieTable.open(corpus(name)).scan().tasks()]
    found = pa.Table.from_batches([batch for task in tasks for batch in task.to_batches()])
    assert sort(found) == sort(answer(name, "snapshot"))


@pytest.mark.parametrize("name", TABLES)
def test_the_history_of_a_record_has_its_base_row(corpus: Callable[[str], Path], name: str) -> None:
    table = HoodieTable.open(corpus(name))
    found = [trace_record_history(each, table.read_info(each), "k1") for each in table.file_slices()]
    (history,) = [each for each in found if each is not None]
    assert any(step.version.source == "base file" for step in history.steps)
    assert history.outcome is not None
    assert history.outcome["s"] == "new"


@pytest.mark.parametrize("name", TABLES)
def test_without_a_schema_in_commits_the_newest_file_has_it(tmp_path: Path, name: str) -> None:
    table = HoodieTable.open(unpack(name, tmp_path))
    from hoodie_py.table.schema.resolver import read_file_schema

    base = next(each.base_file for each in table.file_slices() if each.base_file is not None)
    schema = read_file_schema(table._snapshot.files, base.path)
    assert schema is not None
    assert schema.names == table.schema.names
    assert schema.field("at").type == table.schema.field("at").type


@pytest.mark.parametrize("name", TABLES)
def test_writes_are_refused_by_name(tmp_path: Path, name: str) -> None:
    table = HoodieTable.open(unpack(name, tmp_path))
    rows = table.scan().to_arrow()
    before = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*"))
    kind = name.partition("_")[0].upper()
    calls: list[Callable[[], Any]] = [
        lambda: table.upsert(rows),
        lambda: table.delete(["k1"]),
        lambda: table.insert(rows),
    ]
    if load_case(name)["table_type"] == "MERGE_ON_READ":
        calls += [table.compact, table.schedule_compaction]
    for call in calls:
        with pytest.raises(UnsupportedFeatureError, match=f"base files of format '{kind}'"):
            call()
    assert sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*")) == before


def test_a_clean_needs_no_data_files(tmp_path: Path) -> None:
    root = unpack("orc_types_cow_v6", tmp_path)
    for path in root.rglob("*"):
        path.chmod(0o755)
    before = sort(HoodieTable.open(root).scan().to_arrow())
    HoodieTable.open(root).clean(retain_commits=1)
    assert sort(HoodieTable.open(root).scan().to_arrow()) == before


def test_a_table_of_several_formats_is_read_by_extension(tmp_path: Path) -> None:
    """One file of an ORC table becomes a Parquet file, another a Lance file, each with the rows it had."""
    from lance.file import LanceFileWriter

    root = unpack("orc_types_cow_v6", tmp_path)
    for path in [root, *root.rglob("*")]:
        path.chmod(0o755)
    want = sort(HoodieTable.open(root).scan().to_arrow())
    files = sorted(root.glob("part=*/*.orc"))
    for number, path in enumerate(files):
        rows = orc.read_table(path)
        if number % 3 == 0:
            at = rows.schema.get_field_index("at")
            times = rows.column(at).cast(pa.timestamp("us", "UTC"))
            deep = [
                name for name in rows.schema.names if "timestamp" in str(rows.schema.field(name).type) and name != "at"
            ]
            pq.write_table(rows.set_column(at, "at", times).drop_columns(deep), path.with_suffix(".parquet"))
            _rename(root, path, ".parquet")
        elif number % 3 == 1:
            with LanceFileWriter(str(path.with_suffix(".lance")), version="2.2") as writer:
                writer.write_batch(_instants(rows))
            _rename(root, path, ".lance")
    assert {path.suffix for path in root.glob("part=*/*") if not path.name.startswith(".")} == {
        ".orc",
        ".parquet",
        ".lance",
    }
    found = sort(HoodieTable.open(root).scan(options={"hoodie.metadata.enable": "false"}).to_arrow())
    assert len(found) == len(want)
    for mine, other in zip(found, want, strict=True):
        same = [name for name in other if name not in ("st", "mm")]
        assert {name: mine[name] for name in same} == {name: other[name] for name in same}


def _instants(rows: pa.Table) -> pa.Table:
    from hoodie_py.reader.base.orc_file import make_instants, to_instant_type

    convert = make_instants("UTC")
    arrays = [pa.chunked_array([convert(column.combine_chunks())]) for column in rows.columns]
    return pa.table(arrays, pa.schema([field.with_type(to_instant_type(field.type)) for field in rows.schema]))


def _rename(root: Path, path: Path, suffix: str) -> None:
    """Let the commits name the new file in place of the old one."""
    path.unlink()
    for commit in (root / ".hoodie").glob("*.commit"):
        text = commit.read_text()
        if path.name in text:
            commit.write_text(json.dumps(json.loads(text.replace(path.name, path.with_suffix(suffix).name))))
