"""The mergers that users supply, and the search for a table's merger among them.

Only mergers that the user supplied count; a class that only the table names is never imported. The first of these
sources that has the merger decides:

1. ``register_merger``; 2. the dotted Python paths in the user's option
``hoodie.write.record.merge.custom.implementation.classes``; 3. the entry-point group ``hoodie_py.record_mergers``.

A merger is found by its strategy id, in payload tables by its payload class (Hudi's
HoodieRecordUtils.createRecordMerger). ``selection.py`` decides whether a table's merger is searched for at all.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence

from hoodie_py.errors import InvalidQueryError, MergeError
from hoodie_py.formats.config.merge_config import MergeMode
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.options.read import CUSTOM_MERGER_CLASSES
from hoodie_py.reader.merge.merger import Merger, RecordMerger

ENTRY_POINT_GROUP = "hoodie_py.record_mergers"
_registered: list[type[RecordMerger]] = []


def register_merger(cls: type[RecordMerger]) -> type[RecordMerger]:
    """Register a merger class for all tables of this process; usable as a decorator.

    It replaces a registered class of the same module and name, as when a notebook cell runs again.

    Raises:
        TypeError: not a RecordMerger class, or a class without strategy id and payload class.

    Examples:
        >>> @register_merger
        ... class Latest(RecordMerger):
        ...     strategy_id = "5d6b8a0e-7b2c-4d0e-9f1a-3c4d5e6f7a44"
        ...
        ...     def merge(self, older, newer, context, props):
        ...         return newer
        >>> table = HoodieTable.create("latest", trips.schema, record_key="id", merge_strategy_id=Latest.strategy_id)
        >>> table.config.merge_mode.value
        'CUSTOM'
    """
    if not (isinstance(cls, type) and issubclass(cls, RecordMerger)):
        raise TypeError(f"register_merger takes a RecordMerger class, not {cls!r}.")
    if not getattr(cls, "strategy_id", None) and not cls.payload_classes:
        raise TypeError(f"{cls.__name__} has neither strategy_id nor payload_classes, so no table can name it.")
    _registered[:] = [cls, *(known for known in _registered if _get_name(known) != _get_name(cls))]
    return cls


def as_merger(merger: Merger) -> RecordMerger:
    """Return the merger as an instance; ``merger`` is a class or an instance.

    Raises:
        InvalidQueryError: it is neither, or the class needs arguments.
    """
    if isinstance(merger, RecordMerger):
        return merger
    if not (isinstance(merger, type) and issubclass(merger, RecordMerger)):
        raise InvalidQueryError(f"The merger must be a RecordMerger or a subclass of it, not {merger!r}.")
    try:
        return merger()
    except Exception as error:
        raise InvalidQueryError(
            f"Making the merger {merger.__name__} failed: {type(error).__name__}: {error}",
            hint="A merger class must be made without arguments and define merge; or pass an instance as merger=.",
        ) from error


def find_merger(config: TableConfig, options: Mapping[str, str], builtin: RecordMerger | None = None) -> RecordMerger:
    """Return the supplied merger of a table whose merge mode is CUSTOM, else the one built in for its payload class.

    Raises:
        MergeError: there is no merger, or two classes have the same name; the message names the strategy id or payload
            class and the ways to supply a merger.
        InvalidQueryError: a dotted path in the option cannot be imported.
    """
    found, passed_over = _search(config, options)
    if found is not None:
        return as_merger(found)
    if builtin is not None:
        return builtin
    notes = f" Passed over: {'; '.join(passed_over)}." if passed_over else ""
    raise MergeError(
        f"The table needs a merger for {_describe_wanted(config)} and none was supplied.",
        table=config.name,
        hint=(
            f"Pass merger=, call register_merger (on Spark: hoodie_py.spark.register(spark, mergers=[...])), name a "
            f"Python class in the option {CUSTOM_MERGER_CLASSES}, "
            f"or install a package with an entry point in {ENTRY_POINT_GROUP}.{notes}"
        ),
    )


def find_supplied_merger(
    config: TableConfig, options: Mapping[str, str], merger: Merger | None = None
) -> Merger | None:
    """Return the merger that the user supplied: the argument, else for merge mode CUSTOM a registered one.

    None if no merger was supplied; errors as for ``find_merger``.
    """
    if merger is not None or config.merge_mode is not MergeMode.CUSTOM:
        return merger
    found = _search(config, options)[0]
    return None if found is None else as_merger(found)


def _search(config: TableConfig, options: Mapping[str, str]) -> tuple[type[RecordMerger] | None, list[str]]:
    """Search the sources in their order; return the merger class and notes on the entries that were skipped."""
    registered = _choose_one([cls for cls in _registered if is_merger_of(cls, config)], "register_merger", config)
    named, passed_over = _find_named(config, options)  # in any case: a path that fails to import is an error
    first = registered or named
    if first is not None:
        return first, passed_over
    installed, failed = _load_installed()
    source = f"entry points in {ENTRY_POINT_GROUP}"
    found = _choose_one([cls for cls in installed if is_merger_of(cls, config)], source, config)
    return found, passed_over + failed


def _choose_one(classes: Sequence[type[RecordMerger]], source: str, config: TableConfig) -> type[RecordMerger] | None:
    """Return the only class; None if there is none.

    Raises:
        MergeError: there are several classes.
    """
    distinct = list(dict.fromkeys(classes))
    if len(distinct) > 1:
        names = ", ".join(".".join(_get_name(cls)) for cls in distinct)
        raise MergeError(
            f"Several mergers stand for {_describe_wanted(config)}: {names} ({source}).",
            table=config.name,
            hint="Pass the right one as merger=.",
        )
    return distinct[0] if distinct else None


def _describe_wanted(config: TableConfig) -> str:
    if config.is_payload_based:
        return f"payload class {config.payload_class}"
    return f"merge strategy {config.merge_strategy_id}"


def is_merger_of(merger: Merger, config: TableConfig) -> bool:
    """Say whether a table names this merger: by payload class if the table has one, else by strategy id.

    Only tables of merge mode CUSTOM name a merger.
    """
    cls = merger if isinstance(merger, type) else type(merger)
    if config.merge_mode is not MergeMode.CUSTOM:
        return False
    if config.is_payload_based:
        return config.payload_class in cls.payload_classes
    strategy = getattr(cls, "strategy_id", None)
    return strategy is not None and strategy == config.merge_strategy_id


def import_merger(path: str) -> type[RecordMerger]:
    """Import the merger class at a dotted path that a user gave.

    Raises:
        InvalidQueryError: it cannot be imported, or it is not a RecordMerger class.
    """
    cls = _import_class(path.strip())
    if cls is None:
        raise InvalidQueryError(
            f"{path} is no Python class that can be imported.", hint="Name one as MODULE.CLASS; PYTHONPATH says where."
        )
    return cls


def _get_name(cls: type[RecordMerger]) -> tuple[str, str]:
    return cls.__module__, cls.__qualname__


def _find_named(config: TableConfig, options: Mapping[str, str]) -> tuple[type[RecordMerger] | None, list[str]]:
    """Return the first class of the user's option that the table names, and the entries that are not Python paths.

    Later entries are not imported.
    """
    passed_over = []
    for path in CUSTOM_MERGER_CLASSES.read(options):
        cls = _import_class(path)
        if cls is None:
            passed_over.append(f"{path} is no Python class (Java classes are not loaded)")
        elif is_merger_of(cls, config):
            return cls, passed_over
    return None, passed_over


def _load_installed() -> tuple[list[type[RecordMerger]], list[str]]:
    """Return the classes that installed packages offer, and the entry points that cannot be loaded."""
    from importlib.metadata import entry_points  # imported here: it takes milliseconds and few tables need it

    classes, passed_over = [], []
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        try:
            loaded = entry.load()
        except Exception as error:  # noqa: BLE001 - foreign code; the error without a merger names it
            passed_over.append(f"entry point {entry.name} ({entry.value}) failed: {type(error).__name__}: {error}")
            continue
        if isinstance(loaded, type) and issubclass(loaded, RecordMerger):
            classes.append(loaded)
        else:
            passed_over.append(f"entry point {entry.name} ({entry.value}) is no RecordMerger class")
    return classes, passed_over


def _import_class(path: str) -> type[RecordMerger] | None:
    """Import a user's dotted path; None if the Python module does not exist, as for a Java class."""
    module, _, name = path.rpartition(".")
    if not module:
        return None
    try:
        loaded = getattr(importlib.import_module(module), name, None)
    except ModuleNotFoundError as error:
        if f"{module}.".startswith(f"{error.name}."):
            return None
        raise InvalidQueryError(f"Importing the merger {path} failed: {error}") from error
    except Exception as error:
        raise InvalidQueryError(f"Importing the merger {path} failed: {type(error).__name__}: {error}") from error
    if not (isinstance(loaded, type) and issubclass(loaded, RecordMerger)):
        raise InvalidQueryError(f"{path} is not a RecordMerger class.")
    return loaded
