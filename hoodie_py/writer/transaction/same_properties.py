"""Check that a table still has the properties (``hoodie.properties``) that an operation rests on.

Keys, partition paths, merged rows, change data and the place of the timeline's files follow from the properties.
Upgrades and downgrades change them: Java's writers upgrade a table on their own, and people use ``hudi-cli``.
"""

from __future__ import annotations

from hoodie_py.errors import ConflictError
from hoodie_py.formats.config.table_config import (
    INDEX_DEFINITIONS_PATH,
    METADATA_PARTITIONS,
    METADATA_PARTITIONS_INFLIGHT,
    PARTITION_EXTRACTOR,
    VERSION,
    TableConfig,
)

_TAKEN_OVER = {METADATA_PARTITIONS, METADATA_PARTITIONS_INFLIGHT, INDEX_DEFINITIONS_PATH}
_FOR_CATALOGS = {PARTITION_EXTRACTOR}
_SHOWN = 5


def check_same_properties(before: TableConfig, now: TableConfig) -> None:
    """Check that no property changed that an operation rests on. Indexes may come and go (``KeptIndexes``).

    Raises:
        ConflictError: names the properties that changed.
    """
    old, new = before.properties, now.properties
    if old == new:
        return
    changed = {key for key in (*old, *new) if old.get(key) != new.get(key)} - _TAKEN_OVER - _FOR_CATALOGS
    if not changed:
        return
    if VERSION in changed:
        text = f"The table's version changed from {before.version} to {now.version} since this operation looked at it."
        raise ConflictError(text, hint="Run it again.", table=now.name)
    raise ConflictError(
        "The table's properties changed since this operation looked at it.",
        hint="Run it again.",
        table=now.name,
        properties=", ".join(sorted(changed)[:_SHOWN]),
    )
