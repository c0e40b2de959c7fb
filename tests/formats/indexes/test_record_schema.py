"""The schema of a new metadata table's records is the one that Java's files have, without its comments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hoodie_py.formats.hfile.reader import read_info
from hoodie_py.formats.indexes.record_schema import make_record_schema
from tests.corpus import unpack


def _drop_comments(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _drop_comments(value) for key, value in tree.items() if key != "doc"}
    return [_drop_comments(each) for each in tree] if isinstance(tree, list) else tree


def test_the_schema_is_that_of_java(tmp_path: Path) -> None:
    base = unpack("mdt_files_mor_v9", tmp_path)
    file = min((base / ".hoodie" / "metadata" / "files").glob("*.hfile"))
    stored = read_info(file.read_bytes())["schema"]
    assert json.loads(make_record_schema()) == _drop_comments(json.loads(stored))
