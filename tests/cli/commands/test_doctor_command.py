from __future__ import annotations

import json

import pytest

from hoodie_py.cli.commands.doctor import NEEDED


def test_all_is_well_here(hoodie, corpus) -> None:
    done = hoodie("doctor", corpus("basic_mor_v9_part"))
    assert "pyarrow" in done.stdout
    assert "basic_mor_v9_part" in done.stdout
    assert "needed does not work" not in done.stdout


def test_json(hoodie) -> None:
    found = json.loads(hoodie("doctor", "--json").stdout)
    assert {"Python", "Java", *NEEDED} <= {check["name"] for check in found}
    assert {check["status"] for check in found} <= {"ok", "missing"}


def test_no_java_is_advice_not_failure(hoodie, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    assert "openjdk" in hoodie("doctor").stdout


def test_what_is_needed_and_broken_is_failure(hoodie, tmp_path) -> None:
    done = hoodie("doctor", "--endpoint-url", "http://127.0.0.1:1", status=1)
    assert "does not work" in done.stdout
    assert hoodie("doctor", tmp_path, "--json", status=1).stdout
