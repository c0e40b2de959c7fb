from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hoodie_py.formats.log.framing import iterate_blocks


def log_files(table: Path) -> list[Path]:
    return sorted(path for path in table.rglob(".*.log.*") if ".hoodie" not in path.relative_to(table).parts)


def blocks_of(hoodie: Any, path: Path) -> list[dict[str, Any]]:
    return json.loads(hoodie("log", path, "--json").stdout)


def test_blocks_of_a_log(hoodie, corpus) -> None:
    found = [block for path in log_files(corpus("event_time_deletes_mor_v9")) for block in blocks_of(hoodie, path)]
    counts = sorted((block["type"], block["records"]) for block in found)
    assert counts == [("AVRO_DATA", 1), ("AVRO_DATA", 2), ("AVRO_DATA", 2), ("DELETE", 1), ("DELETE", 2), ("DELETE", 3)]
    assert all(block["instant"] == block["headers"]["INSTANT_TIME"] for block in found)


@pytest.mark.parametrize(
    ("name", "kind"), [("blocks_parquet_mor_v8", "PARQUET_DATA"), ("blocks_hfile_mor_v8", "HFILE_DATA")]
)
def test_blocks_of_other_formats_are_counted(hoodie, corpus, name: str, kind: str) -> None:
    found = [block for path in log_files(corpus(name)) for block in blocks_of(hoodie, path)]
    assert all(block["records"] > 0 for block in found if block["type"] == kind)
    assert kind in {block["type"] for block in found}


def test_rollbacks_say_of_what(hoodie, corpus) -> None:
    shown = [hoodie("log", path).stdout for path in log_files(corpus("rollback_completed_mor_v6"))]
    assert any("COMMAND" in text and "rolls back 2026" in text for text in shown)


def test_corrupt_stretches_are_shown(hoodie, corpus) -> None:
    found, messages = [], ""
    for path in log_files(corpus("damaged_log_middle_mor_v6")):
        found += blocks_of(hoodie, path)
        messages += hoodie("log", path).stderr
    (corrupt,) = [block for block in found if block["type"] == "CORRUPT"]
    assert corrupt["problem"]
    assert "corrupt block" in messages


def test_headers_are_printed_in_full(hoodie, corpus) -> None:
    path = log_files(corpus("event_time_deletes_mor_v9"))[0]
    (block,) = iterate_blocks(path.read_bytes())
    assert block.schema_text in hoodie("log", path, "--headers").stdout


def test_relative_path_without_folder(hoodie, corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    path = log_files(corpus("event_time_deletes_mor_v9"))[0]
    monkeypatch.chdir(path.parent)
    assert blocks_of(hoodie, Path(path.name))


def test_what_is_no_log_file(hoodie, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"something else entirely")
    done = hoodie("log", other, status=1)
    assert done.stdout == ""
    assert "#HUDI#" in done.stderr
    assert "folder" in hoodie("log", f"{tmp_path}/", status=1).stderr
    assert hoodie("log", tmp_path / "absent", status=1).stderr.startswith("error: ")


def test_empty_file_has_no_blocks(hoodie, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    assert json.loads(hoodie("log", empty, "--json").stdout) == []
    assert "no blocks" in hoodie("log", empty).stderr


def test_good_blocks_before_a_bad_one_are_shown(hoodie, corpus, tmp_path: Path) -> None:
    good = log_files(corpus("event_time_deletes_mor_v9"))[0].read_bytes()
    bad = bytearray(good)
    bad[len(b"#HUDI#") + 8 + 3] = 9  # log format version
    both = tmp_path / "both"
    both.write_bytes(good + bytes(bad))
    done = hoodie("log", both, status=1)
    assert "AVRO_DATA" in done.stdout
    assert "version 9" in done.stderr


def test_a_folder_is_no_log(hoodie, corpus) -> None:
    for folder in (corpus("basic_mor_v9_part"), f"{corpus('basic_mor_v9_part')}/"):
        assert "This is a folder, not a log file" in hoodie("log", folder, status=1).stderr
    assert "no such file" in hoodie("log", corpus("basic_mor_v9_part") / "none", status=1).stderr
