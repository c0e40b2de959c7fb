"""A properties file that was cut off is an error, or says the same of the rows."""

from __future__ import annotations

import dataclasses
import re
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hoodie_py import HoodieError, HoodieTable, InvalidTableError
from hoodie_py.files import TableFiles
from hoodie_py.formats.config.properties import parse_properties
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.config.whole_properties import parse_whole_table_config, seal_properties
from hoodie_py.writer.timeline.table_properties import change_properties
from tests.corpus import case_folder, corpus_names
from tests.writer.compaction_tables import QUICK
from tests.writer.written_tables import KINDS, Kind, contents, row

# The last line of the one is a property of a user's own merger; the other's last lines say what is the default.
UNSEEN = {"custom_accumulate_limit_property_mor_v9": 1}


def properties_files(name: str) -> Iterator[bytes]:
    with zipfile.ZipFile(case_folder(name) / "table.zip") as archive:
        for entry in archive.namelist():
            if entry.endswith(".hoodie/hoodie.properties"):
                yield archive.read(entry)


def facts(config: TableConfig) -> dict[str, Any]:
    found = {each.name: getattr(config, each.name) for each in dataclasses.fields(config)}
    del found["properties"]
    return found


def same_or_refused(whole: bytes, part: bytes) -> bool:
    try:
        return facts(parse_whole_table_config(part)) == facts(parse_whole_table_config(whole))
    except HoodieError:
        return True


@pytest.mark.parametrize("name", corpus_names())
def test_every_beginning_of_javas_files(name: str):
    for data in properties_files(name):
        try:
            TableConfig.from_bytes(data)
        except HoodieError:
            continue
        parse_whole_table_config(data)
        lines = data.splitlines(keepends=True)
        for count in range(len(lines) - UNSEEN.get(name, 0)):
            assert same_or_refused(data, b"".join(lines[:count])), lines[count]
        for end in (*range(0, len(data) - 1, 7), len(data) - 1):
            if data[:end][-1:] != b"\n":
                with pytest.raises(InvalidTableError):
                    parse_whole_table_config(data[:end])


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_beginning_of_our_own(kind: Kind, tmp_path: Path):
    data = (kind.create(tmp_path) / ".hoodie/hoodie.properties").read_bytes()
    config = parse_whole_table_config(data)
    bare = b"".join(line for line in data.splitlines(keepends=True) if not line.startswith(b"#"))
    assert facts(parse_whole_table_config(bare)) == facts(config)
    for end in range(len(data) - 1):
        with pytest.raises(InvalidTableError):
            parse_whole_table_config(data[:end])


def test_what_java_makes_of_our_file_needs_no_marks():
    for data in properties_files("basic_mor_v9_part"):
        sealed = seal_properties(data)
        assert parse_properties(sealed) == parse_properties(data)
        assert seal_properties(sealed) == sealed
        assert facts(parse_whole_table_config(sealed)) == facts(parse_whole_table_config(data))
        comments = [line for line in sealed.splitlines(keepends=True) if not line.startswith(b"#")]
        parse_whole_table_config(b"#Updated at now\n" + b"".join(comments))


def test_a_file_cut_off_falls_back_to_its_backup_and_is_mended_by_the_next_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(time, "sleep", lambda _: None)
    table = HoodieTable.open(Kind(9, True).create(tmp_path))
    table.upsert([row(0)], options=QUICK)
    main, backup = tmp_path / ".hoodie/hoodie.properties", tmp_path / ".hoodie/hoodie.properties.backup"
    whole = main.read_bytes()
    main.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InvalidTableError, match="not whole"):
        contents(tmp_path)
    with pytest.raises(InvalidTableError, match="not whole"):
        change_properties(TableFiles.open(tmp_path), {"a": "b"})
    backup.write_bytes(whole)
    assert contents(tmp_path) == {"k0": (1, "a")}
    change_properties(TableFiles.open(tmp_path), {})
    assert main.read_bytes() == whole
    assert not backup.exists()
    backup.write_bytes(whole[:100])
    change_properties(TableFiles.open(tmp_path), {"a": "b"})
    assert parse_properties(main.read_bytes()) == {**parse_properties(whole), "a": "b"}
    assert not backup.exists()


@pytest.mark.parametrize("layout", [True, False])
def test_a_file_without_a_version_says_what_makes_a_table_of_hudi_05_readable(layout: bool) -> None:
    lines = ["hoodie.table.name=t", "hoodie.table.type=COPY_ON_WRITE", "hoodie.archivelog.folder=archived"]
    lines += ["hoodie.timeline.layout.version=1"] if layout else []
    with pytest.raises(InvalidTableError, match="version is missing") as caught:
        parse_whole_table_config(("\n".join(lines) + "\n").encode())
    told = re.findall(r"hoodie\.[a-z.]+=1", str(caught.value.hint))
    assert parse_whole_table_config(("\n".join([*lines, *told]) + "\n").encode()).version == 1
