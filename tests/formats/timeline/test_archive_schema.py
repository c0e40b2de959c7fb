"""The schema of archive entries is that of Java's archive files."""

from __future__ import annotations

import json
from typing import Any

from hoodie_py.formats.log.framing import LogBlock, iterate_blocks
from hoodie_py.formats.timeline.archive_schema import ENTRY_TEXT
from tests.formats.zipped_tables import meta_files


def test_it_is_javas() -> None:
    [file, *_] = [each for each in meta_files("archived_timeline_mor_v6") if ".commits_.archive." in each.name]
    block = next(iter(iterate_blocks(file.data)))
    assert isinstance(block, LogBlock)
    assert block.schema_text is not None
    assert plain(json.loads(ENTRY_TEXT)) == plain(json.loads(block.schema_text))


def plain(kind: Any) -> Any:
    """A type without documentation, and without a default that Java has at a type, where it means nothing."""
    if isinstance(kind, list):
        return [plain(each) for each in kind]
    if isinstance(kind, dict):
        left_out = {"doc", "default"} if {"items", "values"} & kind.keys() else {"doc"}
        return {key: plain(each) for key, each in kind.items() if key not in left_out}
    return kind
