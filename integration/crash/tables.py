"""Small tables that Java Hudi wrote, of every version, with and without a metadata table."""

from __future__ import annotations

import re
import tempfile
from functools import cache
from pathlib import Path

from integration.crash.stores import State
from tests.corpus import unpack, unpack_indexed

PLAIN = ("basic_mor_v6_part", "basic_mor_v8_part", "basic_mor_v9_part")
METADATA = ("old15_metadata_mor", "mdt_files_mor_v9 as 8", "mdt_files_mor_v9")
MORE = ("mdt_all_mor_v6", "mdt_all_mor_v9", "mdt_all_mor_v9 as 8", "compaction_inline_rounds_mor_v9")
TABLES = (*PLAIN, *METADATA)
BOOTSTRAPPED = "bootstrap_metadata_only_mor_v9"
_sources = tempfile.TemporaryDirectory()
_PROPERTIES = (".hoodie/hoodie.properties", ".hoodie/metadata/.hoodie/hoodie.properties")


@cache
def table(name: str) -> State:
    """Return a table; "x as 8" is table x with its version, and its metadata table's, set to 8; "indexed x" is
    table x with all of Java's indexes.

    Sources of a bootstrapped one lie on the local disk, where all its copies read them.
    """
    source, _, version = name.partition(" as ")
    if source.startswith("indexed "):
        with tempfile.TemporaryDirectory() as folder:
            return State.of_folder(unpack_indexed(source.removeprefix("indexed "), Path(folder)))
    if name.startswith("bootstrap_"):
        return State.of_folder(unpack(source, Path(_sources.name)))
    with tempfile.TemporaryDirectory() as folder:
        state = State.of_folder(unpack(source, Path(folder)))
    if not version:
        return state
    changed = {
        path: re.sub(rb"(?m)^(hoodie\.table(\.initial)?\.version)=9", rb"\1=" + version.encode(), state.files[path])
        for path in _PROPERTIES
    }
    return State({**state.files, **changed}, state.folders)
