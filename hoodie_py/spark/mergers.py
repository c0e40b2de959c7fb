"""Sends mergers to Spark's workers, remembers those of a session, and chooses the one that a table names.

Users define mergers in notebooks and in files beside a script, which workers cannot import. So a class is pickled by
value, with its code, unless its module belongs to an installed distribution, which workers have, too.

A session is identified by an entry of its configuration: several Python objects may stand for it, and a Connect session
has no other name that is available in every version.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyspark.cloudpickle

from hoodie_py.errors import MergeError
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.reader.merge.registry import find_supplied_merger, is_merger_of

if TYPE_CHECKING:
    from hoodie_py.reader.merge.merger import Merger

cloudpickle: Any = pyspark.cloudpickle  # untyped
_SESSION = "hoodie_py.session"  # key of the session's configuration: names the session's entry below
_registered: dict[str, dict[str, tuple[Merger, ...]]] = {}  # by session, then by the name of the data source


def remember_mergers(spark: Any, name: str, mergers: Sequence[Merger]) -> None:
    """Keep the mergers that were passed to ``register``, replacing earlier ones of that name."""
    session = spark.conf.get(_SESSION, None)
    if session is None and not mergers:
        return
    if session is None:
        session = uuid4().hex
        spark.conf.set(_SESSION, session)
    known = _registered.setdefault(session, {})
    known.pop(name, None)  # reinserted at the end: the last registered is searched first
    known[name] = tuple(mergers)


def find_session_merger(
    spark: Any, config: TableConfig, options: Mapping[str, str], given: Merger | None = None
) -> Merger | None:
    """Return the merger of a call on a session; None if there is none.

    It is the given one, else the one that the table names among the mergers of the session, else of this process.

    Raises:
        MergeError, InvalidQueryError: as ``find_merger``.
    """
    if given is not None:
        return given
    known = _registered.get(spark.conf.get(_SESSION, None) or "", {})
    found = choose_merger(config, [each for name in reversed(known) for each in known[name]])
    return find_supplied_merger(config, options) if found is None else found


def dump_mergers(mergers: Sequence[Merger]) -> bytes:
    """Check mergers that were passed to ``register`` or ``read``, and pack them.

    Raises:
        TypeError: a value is no RecordMerger, or no table can name it.
        MergeError: a merger cannot be pickled.
    """
    for merger in mergers:
        _check_merger(merger)
    return pack_mergers(mergers)


def pack_mergers(mergers: Sequence[Merger]) -> bytes:
    """Pickle the mergers passed for one table, which need not name them; b"" if there are none.

    Raises:
        MergeError: a merger cannot be pickled.
    """
    if not mergers:
        return b""
    try:
        with _pickle_by_value(mergers):
            return bytes(cloudpickle.dumps(tuple(mergers)))
    except Exception as error:
        raise MergeError(
            f"The mergers cannot be sent to Spark's workers: {type(error).__name__}: {error}",
            hint="A merger's code must not refer to sessions, locks, open files and the like.",
        ) from error


@lru_cache(maxsize=16)
def load_mergers(packed: bytes) -> tuple[Merger, ...]:
    """Unpack mergers; the cache makes equal bytes give the same classes.

    Raises:
        MergeError: the worker lacks a module that a merger imports.
    """
    if not packed:
        return ()
    try:
        mergers: tuple[Merger, ...] = cloudpickle.loads(packed)
    except Exception as error:
        raise MergeError(
            f"The mergers cannot be loaded on this worker: {type(error).__name__}: {error}",
            hint="Install what they import on every worker.",
        ) from error
    return mergers


def choose_merger(config: TableConfig, mergers: Sequence[Merger]) -> Merger | None:
    """Return the first merger that the table names by strategy id or payload class; None if it names none."""
    return next((each for each in mergers if is_merger_of(each, config)), None)


def _check_merger(merger: object) -> None:
    from hoodie_py.reader.merge.merger import RecordMerger

    cls = merger if isinstance(merger, type) else type(merger)
    if not issubclass(cls, RecordMerger):
        raise TypeError(f"register takes RecordMerger classes or instances, not {merger!r}.")
    if not getattr(cls, "strategy_id", None) and not cls.payload_classes:
        raise TypeError(f"{cls.__name__} has neither strategy_id nor payload_classes, so no table can name it.")


@contextmanager
def _pickle_by_value(mergers: Sequence[Merger]) -> Iterator[None]:
    """Make cloudpickle pickle the mergers' modules by value inside the block."""
    already = cloudpickle.list_registry_pickle_by_value()
    modules = {
        module for merger in mergers for module in _iterate_own_modules(merger) if module.__name__ not in already
    }
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in modules:
            cloudpickle.unregister_pickle_by_value(module)


def _iterate_own_modules(merger: Merger) -> Iterator[ModuleType]:
    from hoodie_py.reader.merge.merger import RecordMerger

    cls = merger if isinstance(merger, type) else type(merger)
    for base in cls.__mro__:
        module = sys.modules.get(base.__module__)
        if issubclass(base, RecordMerger) and module is not None and not _is_installed(module):
            yield module


def _is_installed(module: ModuleType) -> bool:
    if module.__name__.partition(".")[0] == __name__.partition(".")[0]:
        return True
    places = {sysconfig.get_path(name) for name in ("purelib", "platlib", "stdlib")}
    file = getattr(module, "__file__", None)
    return file is not None and any(Path(file).is_relative_to(place) for place in places)
