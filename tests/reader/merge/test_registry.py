"""A table gets the merger that its user supplied for it, and never one that only the table names."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hoodie_py import InvalidQueryError, MergeError, RecordMerger, register_merger
from hoodie_py.formats.config.merge_config import PAYLOAD_STRATEGY_ID, MergeMode
from hoodie_py.formats.config.table_config import MERGE_PROPERTY_PREFIX, TableConfig
from hoodie_py.options.read import CUSTOM_MERGER_CLASSES
from hoodie_py.reader.merge import registry
from hoodie_py.reader.merge.registry import as_merger, find_merger, find_supplied_merger
from hoodie_py.reader.selection import select_strategy

pytestmark = pytest.mark.usefixtures("no_mergers")

STRATEGY = "d2000000-0000-4000-8000-000000000001"
PAYLOAD = "com.example.hudi.MyPayload"
TABLE = TableConfig("trips", 9, MergeMode.CUSTOM, STRATEGY, None)
PAYLOAD_TABLE = TableConfig("trips", 9, MergeMode.CUSTOM, PAYLOAD_STRATEGY_ID, PAYLOAD)

MODULE = """
from hoodie_py import RecordMerger

class {name}(RecordMerger):
    strategy_id = "{strategy}"
    payload_classes = ("{payload}",)

    def merge(self, older, newer, context, props):
        return newer
"""
Write = Callable[..., Path]


class Mine(RecordMerger):
    strategy_id = STRATEGY

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        return newer


class StandsIn(RecordMerger):
    payload_classes = (PAYLOAD, "com.example.hudi.Other")

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        return newer


class Other(Mine):
    """Another class for the same strategy."""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes a module with a merger where imports find it."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)

    def write(name: str, text: str = MODULE, cls: str = "Found", strategy: str = STRATEGY) -> Path:
        path = tmp_path / f"{name}.py"
        path.write_text(text.format(name=cls, strategy=strategy, payload=PAYLOAD) if text is MODULE else text)
        importlib.invalidate_caches()
        return path

    yield write
    for name in set(sys.modules) - before:
        del sys.modules[name]


def install(root: Path, name: str, *entries: str) -> None:
    """Fake an installed distribution that offers entry points."""
    info = root / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = "\n".join(entries)
    (info / "entry_points.txt").write_text(f"[{registry.ENTRY_POINT_GROUP}]\n{lines}\n")


def found(config: TableConfig = TABLE, **options: str) -> str:
    return type(find_merger(config, options)).__name__


def test_registered_classes_are_found_by_strategy_id_or_payload_class() -> None:
    assert register_merger(Mine) is Mine
    assert register_merger(StandsIn) is StandsIn
    assert found() == "Mine"
    assert found(PAYLOAD_TABLE) == "StandsIn"
    with pytest.raises(MergeError):
        find_merger(replace(TABLE, merge_strategy_id="other"), {})
    with pytest.raises(MergeError):
        find_merger(replace(PAYLOAD_TABLE, payload_class="com.example.hudi.Third"), {})


def test_a_strategy_id_does_not_find_payload_mergers_nor_the_reverse() -> None:
    register_merger(StandsIn)
    with pytest.raises(MergeError):
        find_merger(replace(TABLE, merge_strategy_id=None), {})
    register_merger(Mine)
    with pytest.raises(MergeError):
        find_merger(replace(PAYLOAD_TABLE, payload_class="x"), {})


def test_a_table_without_its_merger_names_it_and_the_ways_to_supply_one() -> None:
    for config, wanted in ((TABLE, f"merge strategy {STRATEGY}"), (PAYLOAD_TABLE, f"payload class {PAYLOAD}")):
        with pytest.raises(MergeError) as caught:
            find_merger(config, {})
        text = str(caught.value)
        for part in (wanted, "table=trips", "merger=", "register_merger", CUSTOM_MERGER_CLASSES, "record_mergers"):
            assert part in text
        assert find_supplied_merger(config, {}) is None


@pytest.mark.parametrize("thing", [object(), Mine(), int, "Mine"])
def test_only_merger_classes_can_be_registered(thing: Any) -> None:
    with pytest.raises(TypeError, match="takes a RecordMerger class"):
        register_merger(thing)


def test_a_class_that_no_table_can_name_is_refused() -> None:
    class Nameless(RecordMerger):
        def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
            return newer

    with pytest.raises(TypeError, match="neither strategy_id nor payload_classes"):
        register_merger(Nameless)


def test_a_class_defined_again_takes_the_place_of_the_first() -> None:
    def cell() -> type[RecordMerger]:
        class Again(Mine):
            pass

        return Again

    register_merger(cell())
    latest = register_merger(cell())
    assert type(find_merger(TABLE, {})) is latest


def test_two_classes_for_one_strategy_are_an_error_that_names_both() -> None:
    register_merger(Mine)
    register_merger(Other)
    with pytest.raises(MergeError, match=rf"Several mergers stand for merge strategy {STRATEGY}: .*Other, .*Mine"):
        find_merger(TABLE, {})
    with pytest.raises(MergeError, match="Several"):
        find_supplied_merger(TABLE, {})


# -------------------------------------------------------------------------------------------------------------- merger=


def test_a_merger_is_given_as_class_or_instance() -> None:
    mine = Mine()
    assert as_merger(mine) is mine
    assert isinstance(as_merger(Mine), Mine)
    assert select_strategy(TABLE, {}, mine).merger is mine


def test_what_is_no_merger_is_refused() -> None:
    for thing in (object(), "Mine", int):
        with pytest.raises(InvalidQueryError, match="must be a RecordMerger"):
            as_merger(thing)  # type: ignore[arg-type]


def test_classes_that_cannot_be_made_are_refused() -> None:
    class Wants(Mine):
        def __init__(self, limit: int) -> None:
            self.limit = limit

    class Unfinished(RecordMerger):
        strategy_id = STRATEGY

    for cls in (Wants, Unfinished):
        with pytest.raises(InvalidQueryError, match=f"Making the merger {cls.__name__} failed.*pass an instance"):
            as_merger(cls)


# --------------------------------------------------------------------------------------------------------------- option


@pytest.mark.parametrize("key", CUSTOM_MERGER_CLASSES.names)
def test_the_users_option_names_python_classes(module: Write, key: str) -> None:
    module("my_mergers")
    paths = "org.apache.hudi.common.model.HoodieAvroRecordMerger, my_mergers.Found"
    assert type(find_merger(TABLE, {key: paths})).__name__ == "Found"
    assert type(find_merger(PAYLOAD_TABLE, {key: paths})).__name__ == "Found"


def test_the_first_of_the_option_that_fits_counts(module: Write) -> None:
    module("one", strategy="other")
    module("two", cls="Second")
    module("three", cls="Third")
    assert type(find_merger(TABLE, {CUSTOM_MERGER_CLASSES: "one.Found,two.Second,three.Third"})).__name__ == "Second"


@pytest.mark.parametrize("path", ["com.example.JavaMerger", "JavaMerger", "org.apache.hudi.Outer$Inner"])
def test_java_classes_are_passed_over_with_a_hint(path: str) -> None:
    with pytest.raises(MergeError, match="Java classes are not loaded") as caught:
        find_merger(TABLE, {CUSTOM_MERGER_CLASSES: path})
    assert path in str(caught.value)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("import nowhere_to_be_found", "No module named 'nowhere_to_be_found'"),
        ("1 / 0", "ZeroDivisionError"),
        ("Found = int", "is not a RecordMerger class"),
        ("", "is not a RecordMerger class"),
    ],
)
def test_a_python_path_that_does_not_work_is_an_error(module: Write, text: str, complaint: str) -> None:
    module("broken_merger", text)
    with pytest.raises(InvalidQueryError, match=complaint) as caught:
        find_merger(TABLE, {CUSTOM_MERGER_CLASSES: "broken_merger.Found"})
    assert "broken_merger.Found" in str(caught.value)


@pytest.mark.parametrize("prefix", ["", MERGE_PROPERTY_PREFIX])
def test_nothing_is_imported_because_a_table_says_so(module: Write, prefix: str) -> None:
    module("planted", "raise SystemExit('imported')")
    properties = {
        "hoodie.table.name": "trips",
        "hoodie.table.version": "9",
        "hoodie.record.merge.mode": "CUSTOM",
        "hoodie.record.merge.strategy.id": STRATEGY,
        "hoodie.datasource.write.record.merger.impls": "planted.Found",
        f"{prefix}{CUSTOM_MERGER_CLASSES}": "planted.Found",
    }
    config = TableConfig.from_properties(properties)
    with pytest.raises(MergeError, match=f"merge strategy {STRATEGY} and none was supplied"):
        select_strategy(config, {})
    assert "planted" not in sys.modules
    payload = replace(PAYLOAD_TABLE, payload_class="planted.Found")
    with pytest.raises(MergeError, match=r"payload class planted\.Found"):
        select_strategy(payload, {})
    assert "planted" not in sys.modules


# --------------------------------------------------------------------------------------------------------- entry points


def test_installed_packages_offer_mergers(module: Write, tmp_path: Path) -> None:
    module("offered")
    install(tmp_path, "offers", "mine = offered:Found")
    assert found() == "Found"
    assert found(PAYLOAD_TABLE) == "Found"


def test_broken_entry_points_stand_in_nobodys_way_and_are_named(module: Write, tmp_path: Path) -> None:
    module("offered")
    module("not_a_merger", "Thing = 1")
    install(tmp_path, "broken", "gone = nowhere_at_all:Found", "odd = not_a_merger:Thing")
    with pytest.raises(MergeError) as caught:
        find_merger(TABLE, {})
    assert "entry point gone (nowhere_at_all:Found) failed: ModuleNotFoundError" in str(caught.value)
    assert "entry point odd (not_a_merger:Thing) is no RecordMerger class" in str(caught.value)
    install(tmp_path, "offers", "mine = offered:Found")
    importlib.invalidate_caches()
    assert found() == "Found"


def test_two_packages_for_one_strategy_are_an_error(module: Write, tmp_path: Path) -> None:
    module("offered")
    module("rival", cls="Rival")
    install(tmp_path, "one", "mine = offered:Found")
    install(tmp_path, "two", "mine = rival:Rival")
    with pytest.raises(MergeError, match=r"Several mergers .*entry points"):
        find_merger(TABLE, {})


def test_what_is_registered_comes_before_option_and_packages(module: Write, tmp_path: Path) -> None:
    module("named", cls="Named")
    module("offered")
    install(tmp_path, "offers", "mine = offered:Found")
    options = {CUSTOM_MERGER_CLASSES: "named.Named"}
    assert type(find_merger(TABLE, options)).__name__ == "Named"
    register_merger(Mine)
    assert type(find_merger(TABLE, options)).__name__ == "Mine"
