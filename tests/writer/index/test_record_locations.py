"""One place for each key: the one where it lives."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

from hoodie_py.formats.names import parse_log_file_name
from hoodie_py.reader.file_slice import BaseFile, FileSlice, LogFile
from hoodie_py.writer.index.key_lookup import KeyLookup, KeyLookupRequest, KeyLookupResult
from hoodie_py.writer.index.record_locations import NOWHERE, RecordLocations, choose_live_locations
from hoodie_py.writer.records import WriteRecords


def _slice(file_id: str, instant: str, *, log: bool = False) -> FileSlice:
    base = BaseFile(f"p/{file_id}_0-0-0_{instant}.parquet", 1, instant, file_id)
    name = parse_log_file_name(f".{file_id}_{instant}.log.1_0-0-0")
    assert name is not None
    logs = (LogFile(f"p/{name.name}", 1, name),) if log else ()
    return FileSlice("p", file_id, instant, base, logs)


class _Alive:
    """Says which keys of which file group are dead."""

    def __init__(self, dead: dict[str, set[str]]) -> None:
        self._dead = dead

    def find_alive(self, file_slice: FileSlice, keys: pa.Array) -> np.ndarray:
        dead = self._dead.get(file_slice.file_id, set())
        return np.array([key not in dead for key in keys.to_pylist()])


def _all_settled(
    entries: list[tuple[str, int]], slices: list[FileSlice], dead: Any, *, only_alive: bool
) -> list[tuple[str, int]]:
    """Settle keys found in slices, and return the slices of each."""
    names = sorted({key for key, _ in entries})
    ordered = sorted((names.index(key), number) for key, number in entries)
    keys, numbers = (np.array(column, np.int64) for column in zip(*ordered, strict=True))
    found = KeyLookupResult(np.zeros(len(keys), np.int64), keys, numbers, np.arange(len(keys)))
    lookup = cast("KeyLookup", _Alive(dead))
    result = choose_live_locations(found, [KeyLookupRequest(pa.array(names), slices)], lookup, only_alive=only_alive)
    return [(names[key], number) for key, number in zip(result.keys.tolist(), result.slices.tolist(), strict=True)]


def _settled(entries: list[tuple[str, int]], slices: list[FileSlice], dead: Any, *, only_alive: bool) -> dict[str, int]:
    found = _all_settled(entries, slices, dead, only_alive=only_alive)
    assert len(dict(found)) == len(found)
    return dict(found)


OLD, NEW, LATER = _slice("a", "001", log=True), _slice("b", "002"), _slice("c", "003", log=True)


def test_a_key_belongs_where_it_lives() -> None:
    found = _settled([("k", 0), ("k", 1), ("j", 0)], [OLD, NEW], {"a": {"k"}}, only_alive=False)
    assert found == {"k": 1, "j": 0}


@pytest.mark.parametrize("only_alive", [False, True])
def test_a_key_that_lives_in_several_groups_has_all_these_places(only_alive: bool) -> None:
    entries = [("j", 1), ("k", 0), ("k", 1), ("k", 2)]
    found = _all_settled(entries, [OLD, NEW, LATER], {"a": {"k"}}, only_alive=only_alive)
    assert found == [("j", 1), ("k", 1), ("k", 2)]


def test_a_record_comes_once_for_each_of_its_places() -> None:
    first = RecordLocations((OLD, NEW), np.array([0, 0, 1, NOWHERE]), np.array([4, 5, 6, -1]), np.array([0, 1, 1, 2]))
    both = RecordLocations.concatenate([first, RecordLocations((LATER,), np.array([0]), np.array([7]))], [3, 1])
    records = WriteRecords(pa.table({}), pa.chunked_array([["x", "y", "z", "q"]]), pa.chunked_array([["p"] * 4]))
    tagged = both.tag_records(records)
    assert tagged.records.keys.to_pylist() == ["x", "y", "y", "z", "q"]
    assert tagged.file_ids.to_pylist() == ["a", "a", "b", None, "c"]
    assert tagged.positions.tolist() == [4, 5, 6, -1, 7]


@pytest.mark.parametrize(("only_alive", "expected"), [(False, {"k": 2, "j": 0}), (True, {})])
def test_a_dead_key_belongs_to_its_newest_file_or_nowhere(only_alive: bool, expected: dict[str, int]) -> None:
    dead = {"a": {"k", "j"}, "c": {"k"}}
    assert _settled([("k", 0), ("k", 2), ("j", 0)], [OLD, NEW, LATER], dead, only_alive=only_alive) == expected


def test_places_are_joined_and_taken() -> None:
    first = RecordLocations((OLD,), np.array([0, NOWHERE]), np.array([4, -1]))
    second = RecordLocations((NEW, LATER), np.array([1]), np.array([-1]))
    both = RecordLocations.concatenate([first, second], [2, 1])
    records = WriteRecords(pa.table({}), pa.chunked_array([["x", "y", "z"]]), pa.chunked_array([["p"] * 3]))
    tagged = both.tag_records(records)
    assert tagged.file_ids.to_pylist() == ["a", None, "c"]
    assert tagged.base_instants.to_pylist() == ["001", None, None]  # only a log has the last one
    assert tagged.positions.tolist() == [4, -1, -1]
    assert both.take(np.array([2, 0])).tag_records(records.take([2, 0])).file_ids.to_pylist() == ["c", "a"]
