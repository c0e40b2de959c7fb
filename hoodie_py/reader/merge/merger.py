"""RecordMerger: the interface of users' mergers (RFC-101), and the merge row by row.

It agrees with Hudi's HoodieRecordMerger. Only ``merge`` is required. The reader calls only the batch forms, which by
default call the row forms pair by pair.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import FrozenInstanceError
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from hoodie_py.errors import HoodieError, MergeError, UnsupportedFeatureError
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.reader.record.batch import BufferedBatch
from hoodie_py.reader.record.record import BufferedRecord, HoodieOperation, RecordContext
from hoodie_py.reader.record.record_key import RecordKeys

_DROP = "to drop a row, return context.delete(record) from merge"
_ONE_ROW = "merge is called once for each pair of versions and returns one record"
_OLD_MERGE = (
    "; schemas and Option results belong to the interface before Hudi 1.1: ask the context for values, return a "
    "BufferedRecord."
)
_RETIRED = {
    "should_flush": _DROP,
    "shouldFlush": _DROP,
    "full_outer_merge": _ONE_ROW,
    "fullOuterMerge": _ONE_ROW,
    "combine_and_get_update_value": "merge takes its place, for log versions and base rows alike",
    "combineAndGetUpdateValue": "merge takes its place, for log versions and base rows alike",
    "preCombine": "merge takes its place, for log versions and base rows alike",
    "partialMerge": "its name is partial_merge",
    "getMergingStrategy": "set the class attribute strategy_id",
    "get_merging_strategy": "set the class attribute strategy_id",
    "merging_strategy": "set the class attribute strategy_id",
    "getRecordType": "a merger works on every kind of row, through its context",
    "get_record_type": "a merger works on every kind of row, through its context",
    "isProjectionCompatible": "set the class attribute projection_compatible",
    "is_projection_compatible": "set the class attribute projection_compatible",
    "getMandatoryFieldsForMerging": "its name is mandatory_fields",
    "get_mandatory_fields_for_merging": "its name is mandatory_fields",
}
_ARGUMENTS = {
    "merge": ("older", "newer", "context", "props"),
    "partial_merge": ("older", "newer", "reader_schema", "context", "props"),
    "merge_batch": ("older", "newer", "context", "props"),
    "partial_merge_batch": ("older", "newer", "reader_schema", "context", "props"),
    "mandatory_fields": ("schema", "config", "props"),
    "insert_batch": ("newer", "context", "props"),
}


class RecordMerger(ABC):
    """Decides between an older and a newer version of one record.

    A merger is pure: its result depends only on its arguments, and it does not change them. The order of calls for
    different keys is not defined. To delete the record, return ``context.delete(record)``.

    Class attributes:
        strategy_id: the UUID that tables name in ``hoodie.record.merge.strategy.id``.
        payload_classes: names of the Java payload classes that this merger replaces.
        projection_compatible: True if ``mandatory_fields`` names every column that ``merge`` reads; else the reader
            loads all columns of the table.

    Examples:
        >>> class HighestPrice(RecordMerger):
        ...     strategy_id = "0b1f4a52-7a4f-4b9a-9d0c-5a2b8a5a8f10"
        ...
        ...     def merge(self, older, newer, context, props):
        ...         if older.is_delete or newer.is_delete:
        ...             return newer
        ...         return newer if context.get_value(newer, "price") > context.get_value(older, "price") else older
        >>> trips.upsert([{"id": "a", "city": "sf", "price": 1.0, "ts": 3}]).rows_in_logs
        1
        >>> trips.scan(["id", "price"], filter="id = 'a'", merger=HighestPrice).to_arrow().to_pylist()
        [{'id': 'a', 'price': 12.0}]
    """

    strategy_id: ClassVar[str]
    payload_classes: ClassVar[tuple[str, ...]] = ()
    projection_compatible: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, remedy in _RETIRED.items():
            if name in vars(cls):
                raise TypeError(f"{cls.__name__}.{name} belongs to the merger interface before Hudi 1.1: {remedy}.")
        for name, arguments in _ARGUMENTS.items():
            _check_signature(cls, name, arguments)
        names: object = cls.payload_classes
        if isinstance(names, str):
            raise TypeError(f"{cls.__name__}.payload_classes must be a tuple of class names, not a text.")
        if not isinstance(getattr(cls, "strategy_id", ""), str):
            raise TypeError(f"{cls.__name__}.strategy_id must be the text of a UUID.")

    @abstractmethod
    def merge(
        self,
        older: BufferedRecord[Any],
        newer: BufferedRecord[Any],
        context: RecordContext[Any],
        props: Mapping[str, str],
    ) -> BufferedRecord[Any]:
        """Return the surviving version of two versions of one key. Both may be deletes; a delete may lack data."""

    def partial_merge(
        self,
        older: BufferedRecord[Any],
        newer: BufferedRecord[Any],
        reader_schema: pa.Schema,
        context: RecordContext[Any],
        props: Mapping[str, str],
    ) -> BufferedRecord[Any]:
        """Return the surviving version of two versions that may lack columns.

        Raises:
            UnsupportedFeatureError: the subclass does not implement it.
        """
        raise UnsupportedFeatureError(
            f"{type(self).__name__} does not merge partial updates.",
            hint="Implement partial_merge.",
            key=newer.record_key,
        )

    def mandatory_fields(self, schema: pa.Schema, config: TableConfig, props: Mapping[str, str]) -> Sequence[str]:
        """Name the columns that ``merge`` reads; by default the record key and the ordering fields."""
        keys = RecordKeys.of(config.populate_meta_fields, config.record_key_fields)
        return (*keys.columns, *config.ordering_fields)

    def merge_batch(
        self, older: BufferedBatch, newer: BufferedBatch, context: RecordContext[Any], props: Mapping[str, str]
    ) -> BufferedBatch:
        """Merge pairs; record i of both batches has the same key.

        Override it for speed. The results must equal those of ``merge``.
        """
        return merge_rows(older, newer, lambda a, b: self.merge(a, b, context, props), self)

    def partial_merge_batch(
        self,
        older: BufferedBatch,
        newer: BufferedBatch,
        reader_schema: pa.Schema,
        context: RecordContext[Any],
        props: Mapping[str, str],
    ) -> BufferedBatch:
        """Merge pairs where versions may lack columns; by default ``partial_merge`` pair by pair."""
        return merge_rows(older, newer, lambda a, b: self.partial_merge(a, b, reader_schema, context, props), self)

    def insert_batch(
        self, newer: BufferedBatch, context: RecordContext[Any], props: Mapping[str, str]
    ) -> BufferedBatch:
        """Return the final records of log records whose key has no base row; by default the same records."""
        return newer


Merger = RecordMerger | type[RecordMerger]  # users pass a class or an instance
Merge = Callable[[BufferedRecord[Any], BufferedRecord[Any]], BufferedRecord[Any]]


def merge_rows(older: BufferedBatch, newer: BufferedBatch, merge: Merge, merger: RecordMerger) -> BufferedBatch:
    """Merge pair by pair.

    Raises:
        MergeError: the merger raised, its result is not a BufferedRecord or has another key, or a value does not fit
            its column.
    """
    # Indices into older + newer + made: a result that is one of the arguments, as most are, costs only an integer.
    picks = np.empty(len(older), np.int64)
    made: list[BufferedRecord[Any]] = []
    count = len(older)
    for i, (a, b) in enumerate(zip(older.to_records(), newer.to_records(), strict=True)):
        result = merge_pair(a, b, merge, merger)
        if result is b:
            picks[i] = count + i
        elif result is a:
            picks[i] = i
        else:
            picks[i] = 2 * count + len(made)
            made.append(result)
    if not made:
        return newer.where(picks >= count, older)
    fresh = BufferedBatch.from_records(older.context, made)
    return fresh if len(made) == count else BufferedBatch.concat([older, newer, fresh]).take(picks)


def find_first_failure(
    older: BufferedBatch, newer: BufferedBatch, merge: Merge, merger: RecordMerger
) -> HoodieError | None:
    """Merge each pair alone and return the first error, with its key; None if all pairs merge."""
    for a, b in zip(older.to_records(), newer.to_records(), strict=True):
        try:
            BufferedBatch.from_records(older.context, [merge_pair(a, b, merge, merger)])
        except HoodieError as error:
            return error.locate(key=a.record_key, merger=type(merger).__name__)
    return None


def merge_pair(
    older: BufferedRecord[Any], newer: BufferedRecord[Any], merge: Merge, merger: RecordMerger
) -> BufferedRecord[Any]:
    """Merge one pair.

    Raises:
        MergeError: the merger raised, or its result is not a BufferedRecord of the same key, or a live record without
            data.
    """
    key = older.record_key
    try:
        result = merge(older, newer)
    except HoodieError as error:
        error.locate(key=key, merger=type(merger).__name__)
        raise
    except FrozenInstanceError as error:
        raise MergeError(
            f"The merger tried to change a record that it was given: {error}.",
            hint="Return context.replace(record, ...) or context.delete(record) instead.",
            key=key,
            merger=type(merger).__name__,
        ) from error
    except Exception as error:
        raise MergeError(
            f"The merger failed: {type(error).__name__}: {error}", key=key, merger=type(merger).__name__
        ) from error
    if result is newer or result is older:
        return result
    return _check_merged(result, key, merger)


def _check_merged(result: object, key: str, merger: RecordMerger) -> BufferedRecord[Any]:
    place = {"key": key, "merger": type(merger).__name__}
    if not isinstance(result, BufferedRecord):
        raise MergeError(
            f"The merger returned {type(result).__name__}, not a BufferedRecord.",
            hint="To delete a record return context.delete(record).",
            **place,
        )
    if result.record_key != key:
        raise MergeError(f"The merger returned a record of another key, {result.record_key!r}.", **place)
    if result.operation is not None and not isinstance(result.operation, HoodieOperation):
        raise MergeError(f"The merger returned the operation {result.operation!r}, not a HoodieOperation.", **place)
    if result.record is None and not result.is_delete:
        raise MergeError("The merger returned a live record without data.", **place)
    return result


def _check_signature(cls: type[RecordMerger], name: str, arguments: Sequence[str]) -> None:
    """Check that a method takes the arguments that the reader passes.

    Raises:
        TypeError: it does not; the message names the arguments.
    """
    method = vars(cls).get(name)
    bound = not isinstance(method, staticmethod)
    function = method.__func__ if isinstance(method, (staticmethod, classmethod)) else method
    if not inspect.isfunction(function):
        return
    if inspect.iscoroutinefunction(function):
        raise TypeError(f"{cls.__name__}.{name} must be a plain method, not an async one.")
    parameters = list(inspect.signature(function).parameters.values())[1 if bound else 0 :]
    if not _accepts(parameters, len(arguments)):
        text = f"{cls.__name__}.{name} must take ({', '.join((*['self'][:bound], *arguments))})"
        raise TypeError(f"{text}{_OLD_MERGE if 'merge' in name else '.'}")


def _accepts(parameters: Sequence[inspect.Parameter], count: int) -> bool:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    positional = [p for p in parameters if p.kind in kinds]
    required = [p for p in positional if p.default is inspect.Parameter.empty]
    if any(p.kind is inspect.Parameter.KEYWORD_ONLY and p.default is inspect.Parameter.empty for p in parameters):
        return False
    open_ended = any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters)
    return len(required) <= count and (open_ended or count <= len(positional))
