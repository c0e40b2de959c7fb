"""Which stored history of a table's schemas counts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hoodie_py.errors import CorruptFileError
from hoodie_py.table.schema.history import find_history_file, load_schema_history
from tests.table.tables import make_table, open_view

T1, T2, T3 = (f"2026010100000{number}000" for number in range(1, 4))


def schema(version: str, name: str) -> str:
    fields = [{"id": 1, "name": name, "optional": True, "type": "int"}]
    return json.dumps({"max_column_id": 1, "version_id": int(version), "type": "record", "fields": fields})


def history(*schemas: str) -> bytes:
    return f'{{"schemas":[{",".join(reversed(schemas))}]}}'.encode()


def commit(instant: str, **extra: str) -> dict[str, bytes]:
    body = json.dumps({"partitionToWriteStats": {}, "extraMetadata": extra}).encode()
    return {f".hoodie/timeline/{instant}_{instant}.commit": body}


def names(root: Path) -> list[str]:
    return [each.record.columns[0].name for each in load_schema_history(open_view(root).timeline)]


def test_the_newest_history_of_a_completed_commit_counts(tmp_path: Path) -> None:
    one, two = schema(T1, "a"), schema(T2, "b")
    files = {
        f".hoodie/.schema/{T1}_{T1}.schemacommit": history(one),
        f".hoodie/.schema/{T2}_{T2}.schemacommit": history(one, two),
        f".hoodie/.schema/{T3}_{T3}.schemacommit": b"of a commit that failed",
        f".hoodie/.schema/{T2}.schemacommit.inflight": b"",
        f".hoodie/.schema/{T2}.schemacommit.requested": b"",
        ".hoodie/.schema/notes.txt": b"",
    }
    make_table(tmp_path, {**files, **commit(T1), **commit(T2)})
    assert names(tmp_path) == ["a", "b"]


def test_histories_of_the_other_layout_and_of_archived_commits(tmp_path: Path) -> None:
    make_table(tmp_path, {f".hoodie/.schema/{T1}.schemacommit": history(schema(T1, "a")), **commit(T2)})
    assert names(tmp_path) == ["a"]


def test_where_the_folder_is_lost_commits_tell_their_versions(tmp_path: Path) -> None:
    one, two = schema(T1, "a"), schema(T2, "b")
    make_table(tmp_path, {**commit(T1, latest_schema=one), **commit(T2, latest_schema=two), **commit(T3)})
    assert find_history_file(open_view(tmp_path).timeline) is None
    assert names(tmp_path) == ["a", "b"]


NO_ID = b'{"schemas": [{"version_id": 1, "fields": [{"id": "x"}]}]}'


@pytest.mark.parametrize("text", [b"", b"[]", NO_ID, b"[" * 100_000])
def test_a_damaged_history_is_an_error_that_names_the_file(tmp_path: Path, text: bytes) -> None:
    make_table(tmp_path, {f".hoodie/.schema/{T1}_{T1}.schemacommit": text, **commit(T1)})
    with pytest.raises(CorruptFileError) as caught:
        load_schema_history(open_view(tmp_path).timeline)
    assert caught.value.where["path"].endswith(".schemacommit")
