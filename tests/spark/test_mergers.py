"""Mergers reach workers by value, and tables get the one they name."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="NOT TESTED: pyspark is not installed")

from hoodie_py import BufferedRecord, MergeError, RecordContext, RecordMerger
from hoodie_py.formats.config.merge_config import MergeMode
from hoodie_py.spark.mergers import choose_merger, dump_mergers, find_session_merger, load_mergers, remember_mergers

HELPER = 41


class KeepsOlder(RecordMerger):
    strategy_id = "11111111-2222-3333-4444-555555555555"

    def merge(
        self, older: BufferedRecord[Any], newer: BufferedRecord[Any], context: RecordContext[Any], props: Any
    ) -> BufferedRecord[Any]:
        return older if HELPER else newer


class StandsIn(KeepsOlder):
    payload_classes = ("com.example.Payload",)


class NoName(RecordMerger):
    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        return newer


class HoldsALock(KeepsOlder):
    def __init__(self) -> None:
        import threading

        self.lock = threading.Lock()


def config(mode: MergeMode, strategy: str | None = None, payload: str | None = None) -> Any:
    return SimpleNamespace(
        merge_mode=mode, merge_strategy_id=strategy, payload_class=payload, is_payload_based=payload is not None
    )


def test_a_process_that_cannot_import_the_module_gets_the_class(tmp_path: Path) -> None:
    (tmp_path / "packed").write_bytes(dump_mergers([StandsIn]))
    program = (
        "import sys; from hoodie_py.spark.mergers import load_mergers; from hoodie_py import RecordMerger\n"
        f"cls, = load_mergers(open({str(tmp_path / 'packed')!r}, 'rb').read())\n"
        "assert issubclass(cls, RecordMerger) and cls.payload_classes == ('com.example.Payload',)\n"
        "assert cls().merge('older', 'newer', None, {}) == 'older'\n"
    )
    root = Path(__file__).resolve().parents[2]
    environment = {"PYTHONPATH": f"{root}:{root / 'storage'}", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_same_bytes_give_the_same_classes() -> None:
    packed = dump_mergers([KeepsOlder])
    assert load_mergers(packed)[0] is load_mergers(packed)[0]
    assert load_mergers(b"") == ()


def test_packing_leaves_cloudpickle_as_it_was() -> None:
    from pyspark import cloudpickle

    before = set(cloudpickle.list_registry_pickle_by_value())
    dump_mergers([KeepsOlder])
    assert set(cloudpickle.list_registry_pickle_by_value()) == before


@pytest.mark.parametrize("thing", [int, NoName, "KeepsOlder", object()])
def test_what_no_table_can_name_is_refused(thing: Any) -> None:
    with pytest.raises(TypeError):
        dump_mergers([thing])


def test_a_merger_that_cannot_travel_is_an_error_at_registration() -> None:
    with pytest.raises(MergeError, match="cannot be sent"):
        dump_mergers([HoldsALock()])


def test_bytes_that_do_not_load_name_the_remedy() -> None:
    with pytest.raises(MergeError, match="Install what they import"):
        load_mergers(pickle.dumps(0)[:-1])


def test_a_table_gets_the_merger_it_names_and_no_other() -> None:
    mergers = (KeepsOlder, StandsIn)
    assert choose_merger(config(MergeMode.CUSTOM, KeepsOlder.strategy_id), mergers) is KeepsOlder
    assert choose_merger(config(MergeMode.CUSTOM, "other"), mergers) is None
    assert choose_merger(config(MergeMode.CUSTOM, "0", "com.example.Payload"), mergers) is StandsIn
    assert choose_merger(config(MergeMode.CUSTOM, KeepsOlder.strategy_id, "com.example.Other"), mergers) is None
    assert choose_merger(config(MergeMode.EVENT_TIME_ORDERING, KeepsOlder.strategy_id), mergers) is None


class _Session:
    """What of a Spark session counts here: its configuration."""

    def __init__(self) -> None:
        self.conf = self
        self.values: dict[str, str] = {}

    def get(self, key: str, default: str | None) -> str | None:
        return self.values.get(key, default)

    def set(self, key: str, value: str) -> None:
        self.values[key] = value


def test_a_session_has_the_mergers_that_were_registered_in_it_and_no_other_has_them() -> None:
    class Twin(KeepsOlder):
        pass

    wanted = config(MergeMode.CUSTOM, KeepsOlder.strategy_id)
    one, other = _Session(), _Session()
    remember_mergers(one, "hoodie", [])
    assert one.values == {}
    remember_mergers(one, "hoodie", [KeepsOlder])
    assert find_session_merger(one, wanted, {}) is KeepsOlder
    assert find_session_merger(other, wanted, {}) is None
    assert find_session_merger(one, config(MergeMode.CUSTOM, "another"), {}) is None
    assert find_session_merger(one, wanted, {}, StandsIn) is StandsIn
    again = _Session()
    again.values = one.values  # another object of the same session
    assert find_session_merger(again, wanted, {}) is KeepsOlder
    remember_mergers(one, "named", [Twin])
    assert find_session_merger(one, wanted, {}) is Twin
    remember_mergers(one, "named", [])
    assert find_session_merger(one, wanted, {}) is KeepsOlder
    remember_mergers(one, "hoodie", [])
    assert find_session_merger(one, wanted, {}) is None
