"""The two ways to fold a log before and after each commit give the same rows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hoodie_py import HoodieTable
from hoodie_py.reader.changes.log_states import BaseRows, Block, LogState, LogStates, merge_with_base
from hoodie_py.reader.log.log_reader import LogReader
from hoodie_py.reader.read_info import ReadOptions, ReadStats

TABLES = [
    "basic_mor_v6_part", "commit_time_deletes_mor_v8", "custom_highest_price_updates_mor_v9",
    "event_time_deletes_mor_v6", "event_time_updates_mor_v9", "flink_mor_cdc", "is_deleted_column_mor_v9",
    "logonly_bucket_mor_v9", "many_blocks_one_file_mor_v6", "merge_into_partial_mor_v9",
    "payload_partial_update_mor_v6", "two_ordering_fields_mor_v9",
]  # fmt: skip


@pytest.mark.parametrize("wanted", [1, 2, 9], ids="last {}".format)
@pytest.mark.parametrize("name", TABLES)
def test_going_on_is_beginning_anew(
    corpus: Callable[[str], Path], corpus_case: Callable[[str], dict[str, Any]], name: str, wanted: int
) -> None:
    from integration.corpus_mergers import CORPUS_MERGERS

    table = HoodieTable.open(str(corpus(name)))
    merger = CORPUS_MERGERS.get(corpus_case(name).get("merger") or "")
    for file_slice in table.file_slices():
        info = table.read_info(file_slice)
        log = LogReader(file_slice, info, info.schema.names, merger, ReadOptions(), ReadStats())
        with closing(log):
            blocks = [Block(each.scanned.instant, each.entries, each.partial) for each in log.read_blocks()]
            instants = list(dict.fromkeys(block.instant for block in blocks))[-wanted:]
            states = LogStates(log.strategy, blocks, instants)
            base = BaseRows(None, np.full(len(states.keys), -1, np.int64))
            on, anew = list(states._go_on()), list(states._begin_anew())
            assert [each[0] for each in on] == [each[0] for each in anew]
            for (_, *mine), (_, *theirs) in zip(on, anew, strict=True):
                keys = np.flatnonzero(mine[1].at >= 0)
                assert keys.tolist() == np.flatnonzero(theirs[1].at >= 0).tolist()
                for one, other in zip(mine, theirs, strict=True):
                    assert show(log, base, one, keys) == show(log, base, other, keys)


def show(log: LogReader, base: BaseRows, state: LogState | None, keys: np.ndarray) -> list[Any]:
    return log.store.take(merge_with_base(base, state, keys)).to_pylist()
