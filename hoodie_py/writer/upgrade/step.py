"""One step between two neighbouring table versions: what it does to the properties, the timeline and the indexes.

A step only says what is to be done (Hudi ``UpgradeHandler``, ``DowngradeHandler``); ``change_version`` does it. Table
version 7 was never released, so the steps between 6 and 8 go over it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.formats.config import table_config as keys
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.indexes.definitions import IndexDefinitions

Changes = dict[str, str | None]
"""New values of properties; None takes one away."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a step is decided from: the table's properties, its index definitions and the caller's options.

    ``partitions`` are the table's partition paths, below version 6 only.
    """

    config: TableConfig
    definitions: IndexDefinitions = field(default_factory=IndexDefinitions)
    options: Mapping[str, str] = field(default_factory=dict)
    partitions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """What leads from one version to the next.

    Attributes:
        to: the version after it.
        changes: of the table's properties, the version among them.
        metadata_changes: of the metadata table's properties.
        dropped: partitions of the metadata table that do not stay. ``files`` stands for all.
        definitions: the index definitions after it; None where they stay.
    """

    to: int
    changes: Changes
    metadata_changes: Changes = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    definitions: IndexDefinitions | None = None


def set_version(version: int) -> Changes:
    """Return the properties that tell a version (Hudi ``HoodieTableConfig.setTableVersion``)."""
    layout = 1 if version < keys.FIRST_VERSION_OF_LAYOUT_2 else 2
    return {keys.VERSION: str(version), keys.TIMELINE_LAYOUT: str(layout)}


def check_key_generator(config: TableConfig) -> None:
    """Refuse a complex key generator with one field: releases of Hudi spell its keys in two ways (Hudi
    ``KeyGenUtils.isComplexKeyGeneratorWithSingleRecordKeyField``).

    Raises:
        UnsupportedFeatureError: the table has one.
    """
    if config.key_generator == "COMPLEX" and len(config.record_key_fields) == 1:
        raise UnsupportedFeatureError(
            "Another table version for a complex key generator with one field: some releases of Hudi put the field's "
            "name into the record keys, and others do not.",
            hint="If all writers of the table spell keys alike, give the option "
            "hoodie.write.complex.keygen.validation.enable=false.",
            field=config.record_key_fields[0],
        )


def apply_changes(properties: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    """Return properties after changes."""
    after = {key: value for key, value in properties.items() if key not in changes}
    return after | {key: value for key, value in changes.items() if value is not None}
