"""The values of a partition, from its path (Hudi's ``PartitionValueExtractor`` classes), and which class is used."""

from __future__ import annotations

import re
from collections.abc import Callable

from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.config.table_config import PARTITION_EXTRACTOR, TableConfig
from hoodie_py.options.sync import EXTRACTOR

Extract = Callable[[str], tuple[str, ...]]

_PACKAGES = ("org.apache.hudi.hive.", "org.apache.hudi.sync.common.model.partextractor.")
_DAY = re.compile(r"(?:[^/=]+=)?(\d{4})/(?:[^/=]+=)?(\d{1,2})/(?:[^/=]+=)?(\d{1,2})", re.ASCII)
_HOUR = re.compile(rf"{_DAY.pattern}/(?:[^/=]+=)?(\d{{1,2}})", re.ASCII)


def choose_extractor(config: TableConfig, fields: tuple[str, ...], given: str | None) -> Extract:
    """Return the function that gives the values of a partition path.

    ``given`` is the class that an option names. Without it, the table's properties name the class; else it follows from
    the partition fields.

    Raises:
        UnsupportedFeatureError: the class is not one of Hudi's own.
    """
    name = given or config.properties.get(PARTITION_EXTRACTOR, "").strip() or _infer(config, fields)
    for package in _PACKAGES:
        found = _EXTRACTORS.get(name.removeprefix(package)) if name.startswith(package) else None
        if found is not None:
            return found
    raise UnsupportedFeatureError(
        f"The values of partitions come from the class {name[:200]}, which only Java can run.",
        hint=f"Name one of Hudi's own classes in {EXTRACTOR}.",
    )


def _infer(config: TableConfig, fields: tuple[str, ...]) -> str:
    if not fields:
        return f"{_PACKAGES[0]}NonPartitionedExtractor"
    if len(fields) > 1:
        return f"{_PACKAGES[0]}MultiPartKeysValueExtractor"
    if config.hive_style_partitioning:
        return f"{_PACKAGES[0]}HiveStylePartitionValueExtractor"
    if config.slash_separated_date_partitioning:
        return f"{_PACKAGES[0]}SlashEncodedDayPartitionValueExtractor"
    return f"{_PACKAGES[0]}SinglePartPartitionValueExtractor"


def _split(path: str) -> tuple[str, ...]:
    return tuple(_take_value(part) for part in path.split("/")) if path else ()


def _take_value(part: str) -> str:
    name, equals, value = part.partition("=")
    if "=" in value or (equals and not (name and value)):
        raise _make_error(part)
    return value if equals else part


def _take_hive_style(path: str) -> tuple[str, ...]:
    if "=" not in path:
        raise _make_error(path)
    return (_take_value(path),)


def _take_day(path: str) -> tuple[str, ...]:
    return ("-".join(_match(_DAY, path)),)


def _take_hour(path: str) -> tuple[str, ...]:
    return ("-".join(_match(_HOUR, path)),)


def _match(pattern: re.Pattern[str], path: str) -> list[str]:
    found = pattern.fullmatch(path)
    if found is None:
        raise _make_error(path)
    year, *rest = found.groups()
    return [year, *(each.zfill(2) for each in rest)]


def _make_error(path: str) -> InvalidQueryError:
    return InvalidQueryError(
        "A partition's path is not of the form that the class of its values expects.",
        hint=f"Name another class in {EXTRACTOR}.",
        partition=path[:200],
    )


_EXTRACTORS: dict[str, Extract] = {
    "MultiPartKeysValueExtractor": _split,
    "HiveStylePartitionValueExtractor": _take_hive_style,
    "SinglePartPartitionValueExtractor": lambda path: (path,),
    "SlashEncodedDayPartitionValueExtractor": _take_day,
    "SlashEncodedHourPartitionValueExtractor": _take_hour,
    "NonPartitionedExtractor": lambda _: (),
}
