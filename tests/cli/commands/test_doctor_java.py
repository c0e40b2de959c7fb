from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_py.cli.commands.doctor import find_java, find_missing_for_spark


def fake_java(folder: Path, says: str, status: int = 0) -> str:
    command = folder / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit {status}\n")
    command.chmod(0o755)
    return str(folder)


@pytest.mark.parametrize(
    ("says", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "25" 2025-09-16', 25),
    ],
)
def test_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, version: int) -> None:
    monkeypatch.setenv("JAVA_HOME", fake_java(tmp_path, says))
    found = find_java()
    assert found is not None
    assert found.version == version
    assert found.is_new_enough is (version >= 17)


def test_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java() is None
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_java() is None


def test_java_that_fails_or_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", fake_java(tmp_path / "a", "No Java runtime present", 1))
    assert find_java() is None
    monkeypatch.setenv("JAVA_HOME", fake_java(tmp_path / "b", "hello"))
    assert find_java() is None


def test_what_spark_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "pip install 'hoodie_py[spark]'" in (find_missing_for_spark() or "")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    monkeypatch.setenv("JAVA_HOME", fake_java(tmp_path / "old", 'openjdk version "11.0.2"'))
    assert "Java 11" in (find_missing_for_spark() or "")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    assert "none was found" in (find_missing_for_spark() or "")
    monkeypatch.setenv("JAVA_HOME", fake_java(tmp_path / "new", 'openjdk version "21.0.2"'))
    assert find_missing_for_spark() is None
