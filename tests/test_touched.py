"""Which tests a change touches."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests import touched
from tests.touched import choose_tests, find_changed, read_imports


def test_the_nearest_tests_come_first() -> None:
    imports = {
        "tests/table/test_view.py": frozenset({"hoodie_py.table.view"}),
        "tests/table/tables.py": frozenset({"hoodie_py.table.view"}),
        "tests/reader/test_merge.py": frozenset({"tests.table.tables"}),
        "tests/reader/test_log.py": frozenset({"hoodie_py.reader.log"}),
        "tests/cli/test_app.py": frozenset({"hoodie_py.table.view"}),
        "tests/storage/test_store.py": frozenset({"hoodie_storage.store"}),
    }
    assert choose_tests(["hoodie_py/table/view.py", "tests/reader/test_log.py"], imports) == [
        "tests/reader/test_log.py",
        "tests/table/test_view.py",
        "tests/cli/test_app.py",
        "tests/reader/test_merge.py",
    ]
    assert choose_tests(["storage/hoodie_storage/store.py"], imports) == ["tests/storage/test_store.py"]
    assert choose_tests(["docs/example.py"], imports) == []


def test_imports_are_those_of_the_files() -> None:
    imports = read_imports()
    assert "tests.touched" in imports["tests/test_touched.py"]
    assert "hoodie_py.formats.timeline.timeline" in imports["tests/formats/timeline/test_timeline.py"]


def test_a_change_is_what_differs_and_what_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(touched, "ROOT", tmp_path)
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b.c")
    for name in ("kept.py", "changed.py", "gone.py", "page.md"):
        (tmp_path / name).write_text("1\n")
    for command in (("init", "-q"), ("add", "."), ("commit", "-qm", "first"), ("commit", "-qm", "no", "--allow-empty")):
        subprocess.run([*git, *command], cwd=tmp_path, check=True)
    assert find_changed(None) == []
    (tmp_path / "changed.py").write_text("2\n")
    (tmp_path / "page.md").write_text("2\n")
    (tmp_path / "gone.py").unlink()
    (tmp_path / "new.py").write_text("")
    assert find_changed(None) == ["changed.py", "new.py"]
    subprocess.run([*git, "commit", "-qam", "second"], cwd=tmp_path, check=True)
    (tmp_path / "new.py").unlink()
    assert find_changed(None) == ["changed.py"]  # of the last commit, as nothing differs from it
