"""One step between two neighbouring table versions: its changes to the properties, the timeline and the indexes.

A step only describes the changes (Hudi ``UpgradeHandler``, ``DowngradeHandler``); ``change_version`` makes them. Table
version 7 was never released, so the steps between 6 and 8 skip it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.formats.config import table_config as keys
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.indexes.definitions import IndexDefinitions

Changes = dict[str, str | None]
"""New values of properties; None removes one."""


@dataclass(frozen=True, slots=True)
class Facts:
    """The input of a step: the table's properties, its index definitions and the caller's options.

    ``partitions``: the table's partition paths, only below version 6.
    """

    config: TableConfig
    definitions: IndexDefinitions = field(default_factory=IndexDefinitions)
    options: Mapping[str, str] = field(default_factory=dict)
    partitions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """The step from one version to the next.

    Attributes:
        to: the version after it.
        changes: changes of the table's properties, including the version.
        metadata_changes: changes of the metadata table's properties.
        dropped: partitions of the metadata table that do not stay. ``files`` stands for all.
        definitions: the index definitions after it; None if they stay.
    """

    to: int
    changes: Changes
    metadata_changes: Changes = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    definitions: IndexDefinitions | None = None


def set_version(version: int) -> Changes:
    """Return the properties that name a version (Hudi ``HoodieTableConfig.setTableVersion``)."""
    layout = 1 if version < keys.FIRST_VERSION_OF_LAYOUT_2 else 2
    return {keys.VERSION: str(version), keys.TIMELINE_LAYOUT: str(layout)}


def check_key_generator(config: TableConfig) -> None:
    """Refuse a complex key generator with one field (Hudi
    ``KeyGenUtils.isComplexKeyGeneratorWithSingleRecordKeyField``).

    Releases of Hudi spell its keys in two ways.

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
