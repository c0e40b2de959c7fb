"""The steps that lead to the states which operations start from."""

from __future__ import annotations

from typing import Any

from hoodie_py import HoodieTable
from integration.crash.operations import STEPS as OF_SERVICES
from integration.crash.operations import Subject
from integration.crash.writes import subject_of_write, upsert


def change(table: HoodieTable, subject: Subject) -> Any:
    """Change some rows and add some."""
    return upsert(table, subject_of_write(table.files, subject.options))


def restore(table: HoodieTable, subject: Subject) -> Any:
    return table.restore(table.savepoints()[-1].instant, subject.options)


STEPS = {**OF_SERVICES, "change": change, "restore": restore}
