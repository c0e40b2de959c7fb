"""Check the options and mergers of writes and compactions that choose how records merge.

Agrees with Java Hudi's ``HoodieWriterUtils.validateTableConfig`` and
``HoodieTableConfig.inferMergingConfigsForWrites``, tried on tables of versions 6, 8 and 9:

* A payload class decides the merges of its write: of rows in one batch, and with the rows of copy-on-write tables. It
  is not stored, so readers and compactions of a merge-on-read table merge by the table's properties.
* Version 9 accepts payload classes that stand for a merge mode, and only if the table itself has a mode.
* A merge mode or strategy id other than the table's is refused. (Java refuses it on version 9 and ignores it on 6 and
  8.) So is another ``hoodie.compaction.payload.class``, which would be stored.

A compaction stores what its merger decides and drops the merged versions. So the merger must be the table's own, unless
the caller confirms that another one is meant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hoodie_py.errors import InvalidQueryError
from hoodie_py.formats.config.merge_config import PAYLOAD_STRATEGY_ID, MergeMode, replace_old_package
from hoodie_py.formats.config.merge_creation import is_replaced, resolve_merge_for_write
from hoodie_py.formats.config.table_config import PAYLOAD_CLASS, WRITER_PAYLOAD_CLASS, TableConfig
from hoodie_py.options.source import RECORD_MERGE_MODE, RECORD_MERGE_STRATEGY
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.reader.merge.registry import as_merger, is_merger_of


def check_merge_options(config: TableConfig, options: Mapping[str, str]) -> None:
    """Refuse options that ask for a merge that the table does not support.

    Raises:
        InvalidQueryError: names the option, its value and the table's.
    """
    mode = _find_option(options, RECORD_MERGE_MODE)
    if mode is not None and mode[1].upper() != config.merge_mode.value:
        raise _make_error(*mode, config.merge_mode.value)
    strategy = _find_option(options, RECORD_MERGE_STRATEGY)
    if strategy is not None and strategy[1] != config.merge_strategy_id:
        raise _make_error(*strategy, config.merge_strategy_id or "none")
    stored = _find_option(options, [PAYLOAD_CLASS])
    if stored is not None and _normalize_class(stored[1]) != _find_payload_class(config):
        raise _make_error(stored[0], stored[1], _find_payload_class(config) or "none, but a merge mode")
    payload = _find_option(options, [WRITER_PAYLOAD_CLASS])
    if payload is not None:
        _check_payload(config, _normalize_class(payload[1]))


def check_compaction_options(config: TableConfig, options: Mapping[str, str]) -> None:
    """Refuse options that ask for another merge than the table's: a compaction always merges as the table does.

    Raises:
        InvalidQueryError: as ``check_merge_options``, or another payload class than the table's.
    """
    check_merge_options(config, options)
    payload = _find_option(options, [WRITER_PAYLOAD_CLASS])
    if payload is None or _normalize_class(payload[1]) == _find_payload_class(config):
        return
    mode = resolve_merge_for_write(config, options).mode
    if mode is MergeMode.CUSTOM or mode is not config.merge_mode:
        raise _make_error(*payload, _find_payload_class(config) or config.merge_mode.value)


def _check_payload(config: TableConfig, payload: str) -> None:
    if payload == _find_payload_class(config):
        return
    if config.merge_mode is MergeMode.CUSTOM and (config.version >= 9 or not _is_payload_based(config)):
        has = config.payload_class if _is_payload_based(config) else f"merge strategy {config.merge_strategy_id}"
        raise _make_error(WRITER_PAYLOAD_CLASS, payload, str(has))
    from hoodie_py.reader.payloads.classes import make_builtin_payload_merger  # few tables have one

    known = is_replaced(payload) if config.version >= 9 else make_builtin_payload_merger(payload) is not None
    if not known:
        raise _make_error(WRITER_PAYLOAD_CLASS, payload, f"merge mode {config.merge_mode}")


def _is_payload_based(config: TableConfig) -> bool:
    return config.merge_strategy_id == PAYLOAD_STRATEGY_ID


def _find_payload_class(config: TableConfig) -> str | None:
    """Return the table's payload class. Version 9 stores a class that a mode replaces as a legacy property."""
    return config.payload_class or config.legacy_payload_class


def _normalize_class(text: str) -> str:
    return replace_old_package(text.strip())


def _find_option(options: Mapping[str, str], names: Sequence[str]) -> tuple[str, str] | None:
    """Return the first of an option's names that is set, with its value; None if none is set."""
    return next(((name, text) for name in names if (text := options.get(name, "").strip())), None)


def _make_error(key: str, said: str, has: str) -> InvalidQueryError:
    return InvalidQueryError(
        f"The option {key} says {said[:200]!r}, but the table has {has!r}.",
        hint="Leave the option out: the table says how its records merge.",
    )


def check_merger(config: TableConfig, merger: Merger | None, *, override: bool) -> None:
    """Refuse a merger that is not the table's.

    Raises:
        InvalidQueryError: the merger is not the table's, or is no merger.
    """
    if merger is None or override:
        return
    given = as_merger(merger)
    if is_merger_of(given, config):
        return
    raise InvalidQueryError(
        f"{type(given).__name__} is not the merger of this table, {_describe_own(config)}, "
        "and a compaction stores for good what it decides.",
        hint="Leave merger= out, or pass override_merger=True too (--override-merger) if that is what you want.",
        table=config.name,
    )


def keep_if_own(config: TableConfig, merger: Merger | None) -> Merger | None:
    """Return the merger if it is the table's own, else None."""
    return merger if merger is not None and is_merger_of(merger, config) else None


def _describe_own(config: TableConfig) -> str:
    """Describe how a table merges."""
    if config.merge_mode is not MergeMode.CUSTOM:
        return f"which merges by {config.merge_mode}"
    if config.is_payload_based:
        return f"which has payload class {config.payload_class}"
    return f"which has merge strategy {config.merge_strategy_id}"
