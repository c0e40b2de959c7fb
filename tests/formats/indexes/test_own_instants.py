"""Times of a metadata table that its table does not have, as Java's metadata tables have them."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from hoodie_py import HoodieTable
from hoodie_py.formats.indexes.own_instants import creates_partition, find_covered_time, is_own, iterate_creation_times
from hoodie_py.formats.timeline.instants import DELTA_COMMIT
from tests.corpus import unpack
from tests.table.indexes.skipping_tables import unpack as unpack_skipping

T = "20261121100609480"


@pytest.mark.parametrize(
    ("time", "creates", "own"),
    [
        ("00000000000000000", True, True),
        ("00000000000000004", True, True),
        ("00000000000000010", True, True),
        (f"{T}010", True, True),
        (f"{T}013", True, True),
        ("20261128093356222010", True, True),  # of Java 1.2.0, on version 6, after two writes without a metadata table
        ("20261128093404388010", True, True),  # and after two more, for the bloom filters
        (f"{T}001", False, True),
        (f"{T}006", False, True),
        (f"{T}0100", False, False),
        (f"{T}01x", False, True),
        (T, False, False),
        ("20261121100609010", False, False),
        ("20261121100609", False, False),
        ("00000001", False, False),
        ("", False, False),
    ],
)
def test_the_time_tells_what_a_commit_is(time: str, creates: bool, own: bool) -> None:
    assert (creates_partition(time), is_own(time)) == (creates, own)


@pytest.mark.parametrize("newest", [None, T])
@pytest.mark.parametrize("layout", [1, 2])
def test_every_time_that_is_given_is_known_again(newest: str | None, layout: int) -> None:
    times = list(islice(iterate_creation_times(newest, layout), 30))
    assert len(set(times)) == 30
    assert times == sorted(times)
    assert all(creates_partition(each) and is_own(each) for each in times)
    assert {find_covered_time(each) for each in times if each.startswith(T)} == (
        {T} if newest and layout == 1 else set()
    )


@pytest.mark.parametrize("name", ["mdt_files_mor_v9", "old15_metadata_mor", "types_mor_v6", "types_mor_v9"])
def test_commits_of_java_that_created_partitions_are_known_by_their_times(name: str, tmp_path: Path) -> None:
    """Java has no commit of such a time in the table, and one for each partition in the metadata table."""
    base = unpack(name, tmp_path) if "mdt" in name or "metadata" in name else unpack_skipping(name, tmp_path)
    table, metadata = HoodieTable.open(base), HoodieTable.open(base / ".hoodie" / "metadata")
    times = [each.request_time for each in metadata.timeline.select_actions(DELTA_COMMIT)]
    created = [each for each in times if creates_partition(each)]

    assert len(created) == len(table.config.metadata_partitions)
    assert [each for each in times if is_own(each)] == created
    assert all(table.timeline.find(each) is not None for each in times if each not in created)
