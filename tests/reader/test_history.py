"""What a history says happened is what a read gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hoodie_py import HoodieTable
from hoodie_py.reader.history import RecordHistory, trace_record_history

Corpus = Callable[[str], Path]


@pytest.mark.parametrize(
    "name",
    [
        "event_time_deletes_mor_v6",
        "event_time_updates_mor_v9",
        "commit_time_deletes_mor_v8",
        "two_ordering_fields_mor_v9",
        "is_deleted_column_mor_v9",
        "logonly_bucket_mor_v9",
        "log_compaction_mor_v9",
    ],
)
def test_the_outcome_of_each_key_is_its_row_in_a_snapshot(corpus: Corpus, name: str) -> None:
    table = HoodieTable.open(corpus(name))
    rows = {
        (row["_hoodie_partition_path"], row["_hoodie_record_key"]): row for row in table.scan().to_arrow().to_pylist()
    }
    seen = {}
    for file_slice in table.file_slices():
        for key in {key for _, key in rows} | {f"k{i}" for i in range(12)}:
            history = trace_record_history(file_slice, table.read_info(file_slice), key)
            if history is not None and history.outcome is not None:
                seen[file_slice.partition_path, key] = history.outcome
                check_fates(history)
    assert seen == rows


def without_meta(row: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in row.items() if not name.startswith("_hoodie_")}


def check_fates(history: RecordHistory) -> None:
    """What a snapshot shows never loses, and one version stays, or several are merged."""
    outcome = history.outcome
    assert outcome is not None
    kept = [step for step in history.steps if step.fate in ("stays", "merged")]
    assert len(kept) == 1 or {step.fate for step in kept} == {"merged"}
    for number, step in enumerate(history.steps, 1):
        shown = step.version.values
        if shown is not None and not step.version.is_delete and without_meta(shown) == without_meta(outcome):
            assert step.fate in ("stays", "merged", "same")
        if step.fate in ("loses", "replaced", "same") and len(kept) == 1:
            assert history.steps[step.by - 1].fate == "stays"  # type: ignore[operator]
            assert step.by != number
