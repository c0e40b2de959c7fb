"""Which merger a table gets: only ones that the user supplied, never a name that only the table gives.

Sources, the first that has it decides: ``register_merger``; dotted Python paths in the user's option
``hoodie.write.record.merge.custom.implementation.classes``; the entry-point group ``hoodie_py.record_mergers``.  (The
``merger`` argument of a read comes before them all.)  Found by strategy id, or by payload class for payload tables
(Hudi's HoodieRecordUtils.createRecordMerger).
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence

from hoodie_py.errors import InvalidQueryError, MergeError
from hoodie_py.formats.table_config import MergeMode, TableConfig
from hoodie_py.options.read import CUSTOM_MERGER_CLASSES
from hoodie_py.reader.merger import RecordMerger

ENTRY_POINT_GROUP = "hoodie_py.record_mergers"
_registered: list[type[RecordMerger]] = []


def register_merger(cls: type[RecordMerger]) -> type[RecordMerger]:
    """Make a merger class known to every table opened in this process; usable as a decorator.

    A class of the same module and name as one that is known takes its place, as when a notebook cell runs again.

    Raises:
        TypeError: not a RecordMerger class, or one without a strategy id or payload class.
    """
    if not (isinstance(cls, type) and issubclass(cls, RecordMerger)):
        raise TypeError(f"register_merger takes a RecordMerger class, not {cls!r}.")
    if not getattr(cls, "strategy_id", None) and not cls.payload_classes:
        raise TypeError(f"{cls.__name__} has neither strategy_id nor payload_classes, so no table can name it.")
    _registered[:] = [cls, *(known for known in _registered if _get_name(known) != _get_name(cls))]
    return cls


def as_merger(merger: RecordMerger | type[RecordMerger]) -> RecordMerger:
    """Return an instance of a merger given as class or instance.

    Raises:
        InvalidQueryError: it is neither, or a class that cannot be made without arguments.
    """
    if isinstance(merger, RecordMerger):
        return merger
    if not (isinstance(merger, type) and issubclass(merger, RecordMerger)):
        raise InvalidQueryError(f"merger must be a RecordMerger or a subclass of it, not {merger!r}.")
    try:
        return merger()
    except Exception as error:
        raise InvalidQueryError(
            f"Making the merger {merger.__name__} failed: {type(error).__name__}: {error}",
            hint="A merger class must be made without arguments and define merge; or pass an instance as merger=.",
        ) from error


def find_merger(config: TableConfig, options: Mapping[str, str]) -> RecordMerger:
    """Return the user-supplied merger of a table whose merge mode is CUSTOM.

    Raises:
        MergeError: nobody supplied one, or two classes stand for the same name; the message names the strategy id or
            payload class and the ways to supply it.
        InvalidQueryError: a dotted path in the option cannot be imported.
    """
    passed_over: list[str] = []
    found = _search(config, options, passed_over)
    if found is not None:
        return as_merger(found)
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


def find_supplied_merger(config: TableConfig, options: Mapping[str, str]) -> RecordMerger | None:
    """Return what ``find_merger`` does, but None where nobody supplied one; raises otherwise as it does."""
    found = _search(config, options, [])
    return None if found is None else as_merger(found)


def _search(config: TableConfig, options: Mapping[str, str], passed_over: list[str]) -> type[RecordMerger] | None:
    """Look through the sources in turn."""
    for matching in (
        _choose_one([cls for cls in _registered if stands_for(cls, config)], "register_merger", config),
        next((cls for cls in _import_named(options, passed_over) if stands_for(cls, config)), None),
    ):
        if matching is not None:
            return matching
    installed = [cls for cls in _load_installed(passed_over) if stands_for(cls, config)]
    return _choose_one(installed, f"entry points in {ENTRY_POINT_GROUP}", config)


def _choose_one(classes: Sequence[type[RecordMerger]], source: str, config: TableConfig) -> type[RecordMerger] | None:
    """Return the one class, None without any.

    Raises:
        MergeError: there are several.
    """
    distinct = list(dict.fromkeys(classes))
    if len(distinct) > 1:
        names = ", ".join(".".join(_get_name(cls)) for cls in distinct)
        raise MergeError(
            f"Several mergers stand for {_describe_wanted(config)}: {names} ({source}).",
            table=config.name,
            hint="Pass the one that is meant as merger=.",
        )
    return distinct[0] if distinct else None


def _describe_wanted(config: TableConfig) -> str:
    if config.is_payload_based:
        return f"payload class {config.payload_class}"
    return f"merge strategy {config.merge_strategy_id}"


def stands_for(cls: type[RecordMerger], config: TableConfig) -> bool:
    """Say whether a table names this merger: by payload class if it keeps one, else by strategy id."""
    if config.is_payload_based:
        return config.payload_class in cls.payload_classes
    strategy = getattr(cls, "strategy_id", None)
    return strategy is not None and strategy == config.merge_strategy_id


def is_merger_of(merger: RecordMerger | type[RecordMerger], config: TableConfig) -> bool:
    """Say whether a merger is the table's own: only where the merge mode is CUSTOM can a merger of a user's be that.

    Raises:
        InvalidQueryError: it is no merger.
    """
    return config.merge_mode is MergeMode.CUSTOM and stands_for(type(as_merger(merger)), config)


def import_merger(path: str) -> type[RecordMerger]:
    """Return the class that a user names by its dotted path.

    Raises:
        InvalidQueryError: it cannot be imported, or is no RecordMerger class.
    """
    cls = _import_class(path.strip())
    if cls is None:
        raise InvalidQueryError(
            f"{path} is no Python class that can be imported.", hint="Name one as MODULE.CLASS; PYTHONPATH says where."
        )
    return cls


def _get_name(cls: type[RecordMerger]) -> tuple[str, str]:
    return cls.__module__, cls.__qualname__


def _import_named(options: Mapping[str, str], passed_over: list[str]) -> Iterator[type[RecordMerger]]:
    """Yield the classes of the user's option in its order; what is no Python path is passed over."""
    for path in CUSTOM_MERGER_CLASSES.read(options):
        cls = _import_class(path)
        if cls is None:
            passed_over.append(f"{path} is no Python class (Java classes are not loaded)")
        else:
            yield cls


def _load_installed(passed_over: list[str]) -> Iterator[type[RecordMerger]]:
    """Yield the classes that installed packages offer; one that cannot be loaded stands in nobody's way."""
    from importlib.metadata import entry_points  # here, as it takes some milliseconds and few tables need it

    for entry in entry_points(group=ENTRY_POINT_GROUP):
        try:
            loaded = entry.load()
        except Exception as error:  # noqa: BLE001 - others' code; named if no merger is found
            passed_over.append(f"entry point {entry.name} ({entry.value}) failed: {type(error).__name__}: {error}")
            continue
        if isinstance(loaded, type) and issubclass(loaded, RecordMerger):
            yield loaded
        else:
            passed_over.append(f"entry point {entry.name} ({entry.value}) is no RecordMerger class")


def _import_class(path: str) -> type[RecordMerger] | None:
    """Import a user-given dotted path; None for what looks like a Java class (no such Python module)."""
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
