"""Checks options, so that none is ignored silently.

* A declared option that concerns the call (``read``, ``write``, ``source``) must have a valid value.
* An option that asks for a feature of Java Hudi that is missing here is an error or a warning (``undone``).
* An option of Java Hudi that needs no action here is accepted (``passed_over``).
* An unknown name that resembles a known one is an error. Other names are ignored, as in Java: mergers may have
  their own options.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterable, Mapping
from functools import lru_cache

from hoodie_py.errors import HoodieWarning, InvalidQueryError
from hoodie_py.formats.config import table_config
from hoodie_py.options import clustering, indexes, log_compaction, read, source, sync, undone, write
from hoodie_py.options.parse import Option
from hoodie_py.options.passed_over import list_passed_over
from hoodie_py.options.undone import UnsupportedOption

OF_READS: tuple[Option, ...] = read.OPTIONS
OF_WRITES: tuple[Option, ...] = (
    *read.OPTIONS,
    *write.OPTIONS,
    *indexes.OPTIONS,
    *clustering.OPTIONS,
    *log_compaction.OPTIONS,
    *source.OPTIONS,
    *source.OF_NEW_TABLES,
    *sync.OPTIONS,
)

_HUDI, _OURS = "hoodie.", "hoodie_py."
_OWN_PREFIXES = (*table_config.TIMESTAMP_KEYGEN_PREFIXES, table_config.MERGE_PROPERTY_PREFIX)
_SIMILAR = 0.88


def check_read_options(options: Mapping[str, str]) -> None:
    """Check the options of a read; options of writes are ignored.

    Raises:
        InvalidQueryError: a value is not valid, or a name resembles a known one.
        UnsupportedFeatureError: an option asks for rows that a read does not return.
    """
    _check(options, OF_READS, undone.OF_READS)


def check_write_options(options: Mapping[str, str], *, warn: bool = True) -> None:
    """Check the options of a write or a table service; both also read, so options of reads count.

    ``warn=False`` suppresses the warnings of unsupported options, for calls that check twice.

    Raises:
        InvalidQueryError: a value is not valid, or a name resembles a known one.
        UnsupportedFeatureError: an option asks for a table that a write does not make.
    """
    _check(options, OF_WRITES, (*undone.OF_READS, *undone.OF_WRITES), warn=warn)
    sync.find_kinds(options)


def check_table_properties(given: Mapping[str, str]) -> None:
    """Check the properties of a new table; options of reads and writes are not properties.

    Raises:
        InvalidQueryError: a value is not valid, a name resembles a known one, or a name is an option's name.
        UnsupportedFeatureError: the kind of table is not supported.
    """
    _check(given, source.OF_NEW_TABLES, ())
    stored = {*_list_names(source.OF_NEW_TABLES), *_list_property_names()}
    options = {*_list_names(OF_WRITES), *(each.option for each in (*undone.OF_READS, *undone.OF_WRITES))}
    for name in given:
        if name in options - stored and name not in _MERGE_PROPERTIES and not name.startswith(_OWN_PREFIXES):
            raise InvalidQueryError(
                f"{name} is an option of reads or writes and no property of a table.",
                hint="Give it to these as options.",
            )


def _check(
    options: Mapping[str, str], concerned: Iterable[Option], not_done: Iterable[UnsupportedOption], *, warn: bool = True
) -> None:
    for name in options:
        if not _is_known(name):
            _refuse_similar(name)
    if not options:
        return
    for option in concerned:
        option.check(options)
    for each in not_done:
        if each.is_asked(options):
            if each.refused:
                each.refuse(options)
            if warn:
                warnings.warn(HoodieWarning(each.message), stacklevel=4)


def _refuse_similar(name: str) -> None:
    """Refuse a name that resembles a known one."""
    meant = _list_known().get(name.lower())
    if meant is None:
        begin = _HUDI if name.lower().startswith(_HUDI) else ""
        meant = _find_closest(name.lower().removeprefix(begin), begin)
    if meant is not None:
        raise InvalidQueryError(f"Unknown option {name[:200]!r}.", hint=f"Did you mean {meant}?")
    if name.startswith(_OURS):
        raise InvalidQueryError(f"Unknown option {name!r}.", hint=f"There is {read.READ_THREADS}.")


def _find_closest(rest: str, begin: str) -> str | None:
    candidates = {known.removeprefix(begin): meant for known, meant in _list_known().items() if known.startswith(begin)}
    if not begin:
        candidates = {known: known for known in (str(read.AS_OF_INSTANT), str(read.READ_THREADS))}
    found = difflib.get_close_matches(rest, candidates, 1, _SIMILAR)
    return candidates[found[0]] if found else None


def _is_known(name: str) -> bool:
    if "." not in name or name.startswith(_OWN_PREFIXES) or name in _list_declared():
        return True
    known = _list_known().get(name) or _list_known().get(name.lower())
    return known is not None and (name in (known, known.lower()))


@lru_cache(maxsize=1)
def _list_declared() -> frozenset[str]:
    undone_names = (each.option for each in (*undone.OF_READS, *undone.OF_WRITES))
    return frozenset((*_list_names(OF_WRITES), *_list_names(undone_names), *_list_property_names()))


@lru_cache(maxsize=1)
def _list_known() -> dict[str, str]:
    """Return every known name by its lower-case form, in which Spark passes names."""
    return {name.lower(): name for name in (*sorted(list_passed_over()), *sorted(_list_declared()))}


def _list_names(options: Iterable[Option]) -> tuple[str, ...]:
    return tuple(name for option in options for name in option.names)


@lru_cache(maxsize=1)
def _list_property_names() -> frozenset[str]:
    values = [value for name, value in vars(table_config).items() if name.isupper()]
    return frozenset(value for value in values if isinstance(value, str) and value.startswith(_HUDI))


_MERGE_PROPERTIES = (
    read.DELETE_FIELD, read.DELETE_MARKER, read.UNAVAILABLE_VALUE, read.ORDERING_FIELDS_PROPERTY,
    read.ORDERING_FIELD_PROPERTY, read.SAME_ORDERING_UPDATES,
)  # fmt: skip
