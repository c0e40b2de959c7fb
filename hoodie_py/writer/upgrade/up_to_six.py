"""From table versions 1 to 5 to 6 (the upgrade handlers of Hudi 0.9 to 0.14; Hudi 1.x refuses such tables).

    to 2    the properties name record key, partition fields and format of the base files
    to 3    and the key generator, and how partition paths are spelt; the metadata table goes
    to 4    and a checksum
    to 5    rows without a partition value lie in another partition than ``default``
    to 6    plans of compactions have no copy in ``.hoodie/.aux``

Facts that a table does not store come from the options of the call, as in Hudi from the writer's. Instead of relying on
a writer's defaults, the step looks at the table's partition paths. The metadata table is built anew, as its records
changed.
"""

from __future__ import annotations

from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.files import TableFiles
from hoodie_py.formats.config import table_config as keys
from hoodie_py.formats.config.merge_config import replace_old_package
from hoodie_py.formats.config.table_config import CLASS_OF_TYPE, TableConfig, compute_table_checksum
from hoodie_py.formats.names import METADATA_FOLDER
from hoodie_py.formats.timeline.instants import COMPACTION, REQUESTED, parse_instant_name
from hoodie_py.options.source import KEY_GENERATOR_CLASS, PARTITION_PATH, RECORD_KEY
from hoodie_py.options.write import ALLOW_DEFAULT_PARTITION
from hoodie_py.writer.keygen.generator import infer_key_generator
from hoodie_py.writer.upgrade.step import Changes, Facts, Step, apply_changes, set_version

VERSION = 6
_DEFAULT_PARTITION = "default"
_HIVE_DEFAULT = "__HIVE_DEFAULT_PARTITION__"
_PLANS = f"{METADATA_FOLDER}/.aux"


def plan_step(facts: Facts) -> Step:
    """Return the step from a version below 6 to 6.

    Raises:
        InvalidQueryError: neither the table nor the options name the record key.
        UnsupportedFeatureError: rows without a partition value lie in the partition ``default``.
    """
    config = facts.config
    changes: Changes = {**set_version(VERSION)}
    if not config.properties.get(keys.ARCHIVE_FOLDER, "").strip():
        changes[keys.ARCHIVE_FOLDER] = config.archive_folder
    if config.version < 2:
        changes |= _name_fields(facts)
    if config.version < 3:
        changes |= _name_keys(facts, changes)
    changes[keys.CHECKSUM] = str(compute_table_checksum(config.name, config.database))
    if config.version < 5 and not ALLOW_DEFAULT_PARTITION.read(facts.options):
        _check_default_partition(facts)
    return Step(to=VERSION, changes=changes)


def _name_fields(facts: Facts) -> Changes:
    properties = facts.config.properties
    record_key = _find(facts, RECORD_KEY)
    if not record_key:
        raise InvalidQueryError(
            "The table does not tell its record key, as tables of version 1 do not.",
            hint=f"Give the option {RECORD_KEY[0]}, and {PARTITION_PATH[0]} if the table has partitions.",
        )
    found: Changes = {keys.RECORD_KEY_FIELDS: record_key, keys.PARTITION_FIELDS: _find(facts, PARTITION_PATH)}
    if any(facts.partitions) and not found[keys.PARTITION_FIELDS]:
        raise InvalidQueryError(
            "The table has partitions, and does not tell their fields.", hint=f"Give the option {PARTITION_PATH[0]}."
        )
    found[keys.BASE_FILE_FORMAT] = properties.get(keys.BASE_FILE_FORMAT, "").strip() or "PARQUET"
    return found


def _name_keys(facts: Facts, named: Changes) -> Changes:
    config = TableConfig.from_properties(apply_changes(facts.config.properties, {**named, keys.VERSION: "2"}))
    kind = infer_key_generator(config.record_key_fields, config.partition_fields, typed=False)
    generator = _find(facts, KEY_GENERATOR_CLASS) or CLASS_OF_TYPE[kind]
    hive = _find(facts, (keys.HIVE_STYLE_PARTITIONING,)) or str(_has_hive_style(facts, config)).lower()
    return {
        keys.URL_ENCODE_PARTITIONING: _find(facts, (keys.URL_ENCODE_PARTITIONING,)) or "false",
        keys.HIVE_STYLE_PARTITIONING: hive,
        keys.KEY_GENERATOR_CLASS: replace_old_package(generator),
    }


def _find(facts: Facts, names: tuple[str, ...]) -> str:
    """Return what the table's properties give for one of ``names``, else what the options give."""
    every = (
        *(facts.config.properties.get(each, "") for each in names),
        *(facts.options.get(each, "") for each in names),
    )
    return next((each.strip() for each in every if each.strip()), "")


def _has_hive_style(facts: Facts, config: TableConfig) -> bool:
    """Whether all partition paths are spelt ``field=value``."""
    paths = [path for path in facts.partitions if path]
    starts = tuple(f"{each}=" for each in config.partition_fields[:1])
    return bool(paths and starts) and all(path.startswith(starts) for path in paths)


def _check_default_partition(facts: Facts) -> None:
    fields = facts.config.partition_fields
    names = {_DEFAULT_PARTITION, *(f"{each}={_DEFAULT_PARTITION}" for each in fields[:1])}
    found = next((path for path in facts.partitions if path.partition("/")[0] in names), None)
    if found is not None and fields:
        raise UnsupportedFeatureError(
            f"Version 5 of a table with a partition {found!r}: from then on, rows without a value lie in "
            f"{_HIVE_DEFAULT}.",
            hint="Write its rows again with another value, and delete the partition, with a writer of Hudi before "
            f"0.12; if no row of it lacks a value, give the option {ALLOW_DEFAULT_PARTITION}=true.",
        )


def remove_plan_copies(files: TableFiles) -> None:
    """Remove the copies of compaction plans, which no reader of version 6 looks at (HUDI-6040).

    Raises:
        StorageError: the store refused; the next run goes on.
    """
    for info in files.list_or_empty(_PLANS):
        instant = None if info.is_dir else parse_instant_name(info.name, 1)
        if instant is not None and (instant.action, instant.state) == (COMPACTION, REQUESTED):
            files.delete_with_checksum(info.path)
