"""Every merge-on-read reference table, compacted: the rows stay, and no planned log file is left.

Also the tables of other writers, where they are at hand.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from hoodie_py import HoodieError, HoodieTable, HoodieWarning, UnsupportedFeatureError, register_merger
from hoodie_py.errors import ConflictError
from hoodie_py.options.write import METADATA_MODE
from hoodie_py.reader.merge import registry
from integration.corpus_mergers import CORPUS_MERGERS
from tests.corpus import corpus_names, load_case, report_names
from tests.writer.compaction_tables import QUICK, completed, leftovers, missing, orphans, rows, writable

REFUSED = {
    "peer_hudirs_v9_trips_lance_mor": "Writing base files of format 'LANCE'",
    "lance_": "Writing base files of format 'LANCE'",
    "orc_": "Writing base files of format 'ORC'",
    "peer_prestohive_stock_ticks_mor": "version [34], which is only read",
}
WITHOUT_METADATA = ("peer_hudirs_table_all_data_types_mor",)  # the table's properties name files that are not there
PENDING_WRITE = ("inflight_between_mor_v6", "inflight_last_mor_v6", "flink_mor_payload_partial_online")
UNORDERED = ("null_ordering_bigint_mor_v9",)  # versions that do not compare, in Java neither
NO_MERGER = ("custom_cancel_deviations_mor_v9",)
TABLES = [
    name
    for name in (*corpus_names(), *report_names())
    if load_case(name)["table_type"] == "MERGE_ON_READ" and name not in (*PENDING_WRITE, *UNORDERED, *NO_MERGER)
]


@pytest.fixture(autouse=True)
def mergers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", [])
    for merger in CORPUS_MERGERS.values():
        register_merger(merger)
    warnings.simplefilter("ignore", HoodieWarning)  # a torn block in one of the tables


@pytest.mark.parametrize("name", TABLES)
def test_rows_stay(name: str, tmp_path: Path) -> None:
    base = writable(name, tmp_path)
    reason = next((text for prefix, text in REFUSED.items() if name.startswith(prefix)), None)
    if reason is not None:
        with pytest.raises(UnsupportedFeatureError, match=reason):
            HoodieTable.open(base).compact(options=QUICK)
        return
    table = HoodieTable.open(base)
    before, schema, gone = rows(table), table.schema, missing(base)
    had_logs, commits = any(each.log_files for each in table.file_slices()), completed(table, "commit")
    result = table.compact(options={**QUICK, **({str(METADATA_MODE): "disable"} if name in WITHOUT_METADATA else {})})
    if not had_logs:
        assert result.instant is None
        return
    assert result.instant is not None
    now = HoodieTable.open(base)
    assert completed(now, "commit") == sorted([*commits, result.instant])
    assert now.timeline.select_pending_compactions().find(result.instant) is None
    assert rows(now) == before
    assert now.schema.equals(schema)
    plan = now._snapshot.timeline.find_compaction_plan(result.instant)
    assert plan is not None
    planned = {log for operation in plan.operations for log in operation.delta_files}
    left = {log.name.name for each in now.file_slices() for log in each.log_files}
    assert planned
    assert not planned & left
    if not left:
        assert rows(now, "read_optimized") == before
    assert orphans(base) == []
    assert missing(base) == gone
    failed = [each.request_time for each in now.timeline.select_pending() if each.action == "deltacommit"]
    assert leftovers(base) == [f".hoodie/.heartbeat/{time}" for time in failed]


@pytest.mark.parametrize("name", [name for name in PENDING_WRITE if name in (*corpus_names(), *report_names())])
def test_up_to_version_6_a_pending_write_is_in_the_way(name: str, tmp_path: Path) -> None:
    base = writable(name, tmp_path)
    files = sorted(path for path in base.rglob("*"))
    table = HoodieTable.open(base)
    with pytest.raises(ConflictError, match="beside a pending deltacommit") as caught:
        table.compact(options=QUICK)
    assert sorted(path for path in base.rglob("*")) == files
    pending = caught.value.where["instant"]
    before = rows(table)
    table.rollback(pending, options=QUICK)
    has_logs = any(each.log_files for each in HoodieTable.open(base).file_slices())
    assert (HoodieTable.open(base).compact(options=QUICK).instant is not None) == has_logs
    assert rows(HoodieTable.open(base)) == before


@pytest.mark.parametrize("name", [name for name in NO_MERGER if name in corpus_names()])
def test_without_a_merger_nothing_is_begun(name: str, tmp_path: Path) -> None:
    base = writable(name, tmp_path)
    table = HoodieTable.open(base)
    instant = table.schedule_compaction(options=QUICK)
    with pytest.raises(HoodieError, match="needs a merger"):
        table.run_compaction(instant, options=QUICK)
    pending = HoodieTable.open(base).timeline.select_pending_compactions().find(str(instant))
    assert pending is not None
    assert pending.state == "requested"
