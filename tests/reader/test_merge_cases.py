"""Merge cases from a file: what Java Hudi answers, or what Python should where Java is wrong.

``pytest tests/reader --merge-cases FILE`` runs any file of cases; the conftest says which one runs otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hoodie_py.errors import HoodieError
from tests.reader.merge_cases import columns, configurations, sequences, versions
from tests.reader.merge_cases.case import Case

RUNNERS: dict[str, Callable[[Case, Path], None]] = {
    "delta_merge": lambda case, folder: versions.run(case),
    "final_merge": lambda case, folder: versions.run(case),
    "partial_update": lambda case, folder: versions.run(case),
    "buffer_sequence": sequences.run,
    "payload_mapping": lambda case, folder: configurations.run_payload_mapping(case),
    "merger_selection": lambda case, folder: configurations.run_merger_selection(case),
    "schema_handler": lambda case, folder: columns.run_schema_handler(case),
    "delete_context": lambda case, folder: columns.run_delete_context(case),
}


def test_merge_case(merge_case: Case, tmp_path: Path) -> None:
    run = RUNNERS[merge_case.api]
    if "error" in merge_case.expected:
        with pytest.raises(HoodieError):
            run(merge_case, tmp_path)
    else:
        run(merge_case, tmp_path)
