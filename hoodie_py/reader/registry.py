"""Which merger a table gets: only ones that the user supplied, never a name that only the table gives.

Sources, first match wins: the ``merger`` argument; ``register_merger``; dotted Python paths in the user's option
``hoodie.write.record.merge.custom.implementation.classes``; the entry-point group ``hoodie_py.record_mergers``.  Found by
strategy id, or by payload class for payload tables (Hudi's HoodieRecordUtils.createRecordMerger).
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points

from hoodie_py.errors import InvalidQueryError, MergeError
from hoodie_py.formats.option_keys import CUSTOM_MERGER_CLASSES, option
from hoodie_py.formats.merge_config import PAYLOAD_STRATEGY_ID
from hoodie_py.formats.table_config import TableConfig
from hoodie_py.reader.merger import RecordMerger

ENTRY_POINT_GROUP = "hoodie_py.record_mergers"
_registered: list[type[RecordMerger]] = []


def register_merger(cls: type[RecordMerger]) -> type[RecordMerger]:
    """Make a merger class known to every table opened in this process; usable as a decorator.

    Raises:
        TypeError: not a RecordMerger class, or one without a strategy id or payload class.
    """
    if not (isinstance(cls, type) and issubclass(cls, RecordMerger)):
        raise TypeError(f"register_merger takes a RecordMerger class, not {cls!r}.")
    if not getattr(cls, "strategy_id", None) and not cls.payload_classes:
        raise TypeError(f"{cls.__name__} has neither strategy_id nor payload_classes, so no table can name it.")
    if cls not in _registered:
        _registered.insert(0, cls)
    return cls


def as_merger(merger: RecordMerger | type[RecordMerger]) -> RecordMerger:
    """Return an instance of a merger given as class or instance.

    Raises:
        InvalidQueryError: it is neither.
    """
    if isinstance(merger, type) and issubclass(merger, RecordMerger):
        return merger()
    if isinstance(merger, RecordMerger):
        return merger
    raise InvalidQueryError(f"merger must be a RecordMerger or a subclass of it, not {merger!r}.")


def find_merger(config: TableConfig, options: Mapping[str, str]) -> RecordMerger:
    """Return the user-supplied merger of a table whose merge mode is CUSTOM.

    Raises:
        MergeError: nobody supplied one; the message names the strategy id or payload class and the ways to supply it.
        InvalidQueryError: a dotted path in the option cannot be imported.
    """
    payload = config.payload_class if config.merge_strategy_id == PAYLOAD_STRATEGY_ID else None
    passed_over: list[str] = []
    for cls in _candidates(options, passed_over):
        if (payload is not None and payload in cls.payload_classes) or (
            payload is None and getattr(cls, "strategy_id", None) == config.merge_strategy_id
        ):
            return cls()
    wanted = f"payload class {payload}" if payload else f"merge strategy {config.merge_strategy_id}"
    java = f" Java classes are not loaded here: {', '.join(passed_over)}." if passed_over else ""
    raise MergeError(
        f"The table needs a merger for {wanted} and none was supplied.",
        table=config.name,
        hint=f"Pass merger=, call register_merger, name a Python class in the option {CUSTOM_MERGER_CLASSES}, or install a "
        f"package with an entry point in {ENTRY_POINT_GROUP}.{java}",
    )


def _candidates(options: Mapping[str, str], passed_over: list[str]) -> Iterator[type[RecordMerger]]:
    yield from _registered
    for path in filter(None, (text.strip() for text in (option(options, CUSTOM_MERGER_CLASSES) or "").split(","))):
        cls = _import(path)
        if cls is None:
            passed_over.append(path)
        else:
            yield cls
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        loaded = entry.load()
        if isinstance(loaded, type) and issubclass(loaded, RecordMerger):
            yield loaded


def _import(path: str) -> type[RecordMerger] | None:
    """Import a user-given dotted path; None for what looks like a Java class (no such Python module)."""
    module, _, name = path.rpartition(".")
    try:
        loaded = getattr(importlib.import_module(module), name, None) if module else None
    except ModuleNotFoundError:
        return None
    except Exception as error:
        raise InvalidQueryError(f"Importing the merger {path} failed: {type(error).__name__}: {error}") from error
    if not (isinstance(loaded, type) and issubclass(loaded, RecordMerger)):
        raise InvalidQueryError(f"{path} is not a RecordMerger class.")
    return loaded
