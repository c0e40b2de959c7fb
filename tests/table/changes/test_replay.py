"""Changes over a range, applied to the rows at its start, give the rows at its end.

Random histories of this package's writer, and tables that Java and Flink wrote.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hoodie_py import HoodieTable
from hoodie_py.table.changes.query import list_image_fields, make_changes_scan
from hoodie_py.table.scan.scan import make_scan
from hoodie_py.table.snapshot import Snapshot
from tests.table.changes.change_lakes import KINDS, MODES, SCHEMA, count_rows, make, replay, row, times

COLUMNS = SCHEMA.names
COMPACT = {"hoodie.compact.inline.max.delta.commits": "1", "hoodie.metadata.enable": "false"}


def write_history(table: HoodieTable, dice: random.Random, steps: int) -> list[tuple[str, Counter[str]]]:
    """Change a table at random; return its rows after each commit."""
    options = {"hoodie.parquet.small.file.limit": dice.choice(["0", "104857600"]), "hoodie.metadata.enable": "false"}
    states: list[tuple[str, Counter[str]]] = [("earliest", Counter())]
    for step in range(steps):
        keys = dice.sample(range(8), dice.randrange(1, 6))
        match dice.choice(["upsert", "upsert", "upsert", "delete", "compact", "plan"]):
            case "upsert":
                prices = [dice.choice([None, float(step)]) for _ in keys]
                rows = [row(f"k{n}", dice.randrange(9), p, f"p{n % 2}") for n, p in zip(keys, prices, strict=True)]
                table.upsert(pa.Table.from_pylist(rows, SCHEMA), options=options)
            case "delete":
                table.delete([{"id": f"k{n}", "part": f"p{n % 2}"} for n in keys], options=options)
            case "compact" if table.config.is_merge_on_read:
                table.compact(options=COMPACT)
            case "plan" if table.config.is_merge_on_read:
                table.schedule_compaction(options=COMPACT)
        if times(table):
            states.append((max(times(table)), count_rows(table.scan(columns=COLUMNS).to_arrow().to_pylist())))
    return states


@settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    st.sampled_from(KINDS), st.sampled_from(MODES), st.sampled_from(["ts", None]), st.randoms(use_true_random=False),
    st.sampled_from([{}, {"memory_limit": 4096, "batch_rows": 2}]),
)  # fmt: skip
def test_changes_of_random_histories(
    tmp_path_factory: pytest.TempPathFactory,
    kind: tuple[str, int],
    mode: str,
    ordering: str | None,
    dice: random.Random,
    arguments: dict[str, Any],
) -> None:
    table = make(tmp_path_factory.mktemp("lake") / "t", kind, mode, ordering)
    states = write_history(table, dice, 7)
    for at, (start, before) in enumerate(states):
        for end, after in states[at + 1 :]:
            made = table.changes(start, end, as_structs=True, **arguments).to_arrow().to_pylist()
            assert replay(before, made) == after


TABLES = [
    "appended_blocks_mor_v6", "basic_cow_v9_part", "clustering_done_mor_v6", "custom_highest_price_updates_mor_v9",
    "damaged_log_middle_mor_v6", "delete_partition_mor_v9", "drop_partition_columns_mor_v9",
    "duplicate_keys_in_base_cow_v9", "duplicate_keys_in_base_mor_v9", "event_time_deletes_mor_v6",
    "event_time_updates_mor_v9", "evolve_add_column_mor_v9", "evolve_widen_mor_v9", "flink_cow_cdc", "flink_mor_cdc",
    "global_index_move_mor_v6", "global_index_move_mor_v9", "insert_overwrite_mor_v9", "insert_overwrite_table_mor_v6",
    "is_deleted_column_mor_v9", "keys_two_fields_mor_v9", "log_compaction_mor_v6", "log_compaction_mor_v9",
    "logonly_bucket_mor_v9", "merge_into_partial_mor_v9", "nometa_mor_v6", "payload_partial_update_mor_v6",
    "rollback_completed_mor_v6", "rollback_completed_mor_v9", "types_mor_v9", "upgraded_6_to_9_mor",
    "compaction_pending_mor_v9", "truncate_table_mor_v9",
]  # fmt: skip
UNTOLD = ("appended_blocks_mor_v6",)  # its log files were joined by hand, so commits name files that are not there


@pytest.mark.filterwarnings("ignore:Skipped a corrupt log block")
@pytest.mark.parametrize("name", [name for name in TABLES if name not in UNTOLD])
def test_changes_of_tables_that_java_wrote(
    corpus: Callable[[str], Path], corpus_case: Callable[[str], dict[str, Any]], name: str
) -> None:
    base = HoodieTable.open(str(corpus(name)))._snapshot
    merger = find_merger(corpus_case(name).get("merger"))
    table = Snapshot(base.files, replace(base.config, cdc_enabled=True), base.timeline)
    columns = list_image_fields(table.schema.arrow).names
    points: list[tuple[str, Counter[str]]] = [("earliest", Counter())]
    for each in table.timeline.list_completed_writes():
        if table.timeline.read_metadata(each).operation_type == "COMPACT":
            continue  # requested before commits that completed first
        then = Snapshot(table.files, table.config, table.timeline, as_of=each.request_time, schema=table.schema)
        rows = make_scan(then, columns=columns, merger=merger).to_arrow().to_pylist()
        time = each.completion_time if table.config.version >= 8 else each.request_time
        points.append((str(time), count_rows(rows)))
    for at, (start, before) in enumerate(points):
        for end, after in points[at + 1 :]:
            scan = make_changes_scan(table, start, end, as_structs=True, merger=merger)
            assert replay(before, scan.to_arrow().to_pylist()) == after


def find_merger(name: str | None) -> Any:
    from integration.corpus_mergers import CORPUS_MERGERS

    return None if name is None else CORPUS_MERGERS[name]
