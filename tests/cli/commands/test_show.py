from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_py import HoodieTable
from tests.corpus import case_folder

TABLES = (
    "basic_mor_v9_part",
    "basic_cow_v6_nonpart",
    "empty_mor_v9",
    "keys_two_fields_mor_v9",
    "two_ordering_fields_mor_v9",
)


@pytest.mark.parametrize("name", TABLES)
def test_facts_are_the_table_s(hoodie, corpus, corpus_case, name: str) -> None:
    case = corpus_case(name)
    done = hoodie("show", corpus(name), "--json")
    found = json.loads(done.stdout)
    assert done.stderr == ""
    assert found["version"] == case["table_version"]
    assert found["type"] == case["table_type"]
    assert found["record_key"] == case["record_key"].split(",")
    assert found["ordering"] == (case["ordering_fields"] or "").split(",")
    assert found["path"] == str(corpus(name))
    if name != "empty_mor_v9":
        rows = pq.read_schema(case_folder(name) / "expected" / "snapshot.parquet")
        assert [column["name"] for column in found["columns"]] == rows.names


def test_files_are_counted(hoodie, corpus) -> None:
    files = json.loads(hoodie("show", corpus("event_time_deletes_mor_v9"), "--json").stdout)["files"]
    on_disk = [
        path for path in corpus("event_time_deletes_mor_v9").glob("p*/*") if "partition_metadata" not in path.name
    ]
    logs = [path for path in on_disk if ".log." in path.name]
    assert files == {
        "partitions": 2,
        "file_groups": 2,
        "base_files": len(on_disk) - len(logs),
        "base_bytes": sum(path.stat().st_size for path in set(on_disk) - set(logs)),
        "base_formats": ["parquet"],
        "log_files": len(logs),
        "log_bytes": sum(path.stat().st_size for path in logs),
    }


def test_people_see_it_on_80_columns(hoodie, corpus) -> None:
    shown = hoodie("show", corpus("basic_mor_v9_part"), env={"COLUMNS": "80"}).stdout
    assert "MERGE_ON_READ, version 9" in shown
    assert "EVENT_TIME_ORDERING" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_other_formats_than_parquet_are_named(hoodie, corpus) -> None:
    metadata = corpus("mdt_all_mor_v9") / ".hoodie" / "metadata"
    assert json.loads(hoodie("show", metadata, "--json").stdout)["files"]["base_formats"] == ["hfile"]
    assert "KB, hfile)" in hoodie("show", metadata, env={"COLUMNS": "100"}).stdout


def test_types_of_hudi_are_named(hoodie, tmp_path) -> None:
    vector = pa.field(
        "v", pa.list_(pa.field("element", pa.float32(), nullable=False)), metadata={"hudi_type": "VECTOR(3)"}
    )
    HoodieTable.create(tmp_path / "t", pa.schema([pa.field("id", pa.int64()), vector]), record_key="id")
    column = json.loads(hoodie("show", tmp_path / "t", "--json").stdout)["columns"][-1]
    assert column["hudi_type"].startswith("VECTOR(3")
    assert column["type"].startswith("list<element: float")
    assert "VECTOR(3" in hoodie("show", tmp_path / "t").stdout


def test_bars_show_sizes_and_logs(hoodie, corpus) -> None:
    shown = hoodie("show", corpus("basic_mor_v9_part"), "--plot", env={"COLUMNS": "80"}).stdout
    assert "base files by size" in shown
    assert "bytes of logs for a byte of base files, by partition" in shown
    assert "█" in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert "--json" in hoodie("show", corpus("basic_mor_v9_part"), "--plot", "--json", status=2).stderr
