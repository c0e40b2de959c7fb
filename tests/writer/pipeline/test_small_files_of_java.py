"""Where Java Hudi filled a small file in a reference table, this package would have filled the same one, and writes the
same statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from hoodie_py import HoodieTable
from hoodie_py.files import TableFiles
from hoodie_py.formats.timeline.commit_metadata import NO_COMMIT, WriteStat
from hoodie_py.formats.timeline.instants import Instant
from hoodie_py.table.snapshot import Snapshot, open_snapshot
from hoodie_py.writer.pipeline.small_files import choose_small_files
from hoodie_py.writer.settings import WriteSettings

TABLES = [
    "basic_mor_v6_part", "basic_mor_v8_nonpart", "basic_mor_v9_part", "cdc_before_after_mor_v6", "cdc_before_mor_v9",
    "cdc_before_after_mor_v9", "evolve_add_column_mor_v9", "evolve_widen_mor_v9", "drop_partition_columns_mor_v9",
]  # fmt: skip


def iterate_filled(snapshot: Snapshot) -> Iterator[tuple[Instant, Instant, WriteStat]]:
    """Yield delta commits that made a base file for an older one, with the write before them."""
    writes = snapshot.timeline.list_completed_writes()
    for before, instant in pairwise(writes):
        stats = snapshot.timeline.read_metadata(instant).iterate_stats()
        for stat in stats if instant.action == "deltacommit" else ():
            if stat.path is not None and stat.path.endswith(".parquet") and stat.prev_commit not in (None, NO_COMMIT):
                yield before, instant, stat


@pytest.mark.parametrize("name", TABLES)
def test_our_choice_is_javas(corpus: Callable[[str], Path], name: str) -> None:
    snapshot = open_snapshot(TableFiles.open(corpus(name)))
    filled = list(iterate_filled(snapshot))
    assert filled
    for before, _, stat in filled:
        then = snapshot.view.list_slices(before.request_time, [stat.partition_path])
        [chosen] = choose_small_files(snapshot, then, WriteSettings())
        assert chosen.base_file is not None
        assert (chosen.file_id, chosen.base_file.instant) == (stat.file_id, stat.prev_commit)
        assert chosen.base_file.name == stat.prev_base_file
        assert stat.num_writes >= stat.num_inserts + stat.num_update_writes
        assert stat.num_inserts


def test_our_statistics_have_what_javas_have(corpus: Callable[[str], Path], tmp_path: Path) -> None:
    snapshot = open_snapshot(TableFiles.open(corpus("basic_mor_v9_part")))
    _, instant, java = next(iterate_filled(snapshot))
    schema = snapshot.schema.arrow
    names = [each for each in schema.names if not each.startswith("_hoodie_")]
    whole = HoodieTable.open(corpus("basic_mor_v9_part")).scan(columns=names, as_of=instant.request_time).to_arrow()
    assert whole.num_rows > 1
    table = HoodieTable.create(tmp_path / "t", whole.schema, record_key="id")
    table.insert(whole.slice(1))
    table.upsert(whole.slice(0, 2))
    _, _, ours = next(iterate_filled(open_snapshot(TableFiles.open(tmp_path / "t"))))
    assert (ours.num_writes, ours.num_inserts, ours.num_update_writes) == (whole.num_rows, 1, 1)

    def list_given(stat: WriteStat) -> set[str]:
        return {name for name in WriteStat.__slots__ if getattr(stat, name) not in (None, 0, "", (), {})}

    assert list_given(ours) >= list_given(java) - {"runtime_stats", "partition_path"}
