"""Which tests a change touches."""

from __future__ import annotations

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


def test_a_change_is_found() -> None:
    assert all(name.endswith(".py") for name in find_changed("HEAD"))
