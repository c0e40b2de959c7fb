"""RecordMerger: what a user writes to decide which version of a record survives (RFC-101).

One method is enough: ``merge``.  The reader calls the batch forms only; their defaults call the row forms pair by pair.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import pyarrow as pa

from hoodie_py.errors import HoodieError, MergeError, UnsupportedFeatureError
from hoodie_py.formats.table_config import TableConfig
from hoodie_py.reader.batch import BufferedBatch
from hoodie_py.reader.context import RecordContext
from hoodie_py.reader.record_key import RecordKeys
from hoodie_py.reader.records import BufferedRecord

_RETIRED = {
    "should_flush": "return a record marked DELETE from merge to drop a row",
    "shouldFlush": "return a record marked DELETE from merge to drop a row",
    "full_outer_merge": "merge is called once per pair; a merger that makes several rows of one key is not supported",
    "fullOuterMerge": "merge is called once per pair; a merger that makes several rows of one key is not supported",
    "partialMerge": "its name is partial_merge",
}
_MERGE_ARGUMENTS = 4


class RecordMerger(ABC):
    """Decides between an older and a newer version of one record.

    A merger is pure: the result depends on its arguments alone, the arguments stay as they are, and no order of calls
    across keys is promised.  To delete the record, return one marked DELETE (``context.delete``).

    Class attributes:
        strategy_id: the UUID that tables name in ``hoodie.record.merge.strategy.id``.
        payload_classes: names of Java payload classes that this merger stands in for.
        projection_compatible: True if ``mandatory_fields`` names every column that ``merge`` looks at; else the reader
            loads all columns of the table.
    """

    strategy_id: ClassVar[str]
    payload_classes: ClassVar[tuple[str, ...]] = ()
    projection_compatible: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, remedy in _RETIRED.items():
            if name in vars(cls):
                raise TypeError(f"{cls.__name__}.{name} belongs to the merger interface before Hudi 1.1: {remedy}.")
        merge = vars(cls).get("merge")
        if merge is not None and inspect.isfunction(merge) and not _takes(merge, _MERGE_ARGUMENTS):
            raise TypeError(
                f"{cls.__name__}.merge must take (self, older, newer, context, props); schemas and Option results "
                "belong to the interface before Hudi 1.1: ask the context for values, return a BufferedRecord."
            )

    @abstractmethod
    def merge(
        self,
        older: BufferedRecord[Any],
        newer: BufferedRecord[Any],
        context: RecordContext[Any],
        props: Mapping[str, str],
    ) -> BufferedRecord[Any]:
        """Return the surviving version of two versions of one key; both may be deletes, either may lack data."""

    def partial_merge(
        self,
        older: BufferedRecord[Any],
        newer: BufferedRecord[Any],
        reader_schema: pa.Schema,
        context: RecordContext[Any],
        props: Mapping[str, str],
    ) -> BufferedRecord[Any]:
        """Return the surviving version where one side may hold some of the columns only.

        Raises:
            UnsupportedFeatureError: unless a subclass implements it.
        """
        raise UnsupportedFeatureError(
            f"{type(self).__name__} does not merge partial updates.",
            hint="Implement partial_merge.",
            key=newer.record_key,
        )

    def mandatory_fields(self, schema: pa.Schema, config: TableConfig, props: Mapping[str, str]) -> Sequence[str]:
        """Name the columns ``merge`` needs; by default the record key and the ordering fields."""
        keys = RecordKeys.of(config.populate_meta_fields, config.record_key_fields)
        return (*keys.columns, *config.ordering_fields)

    def merge_batch(
        self, older: BufferedBatch, newer: BufferedBatch, context: RecordContext[Any], props: Mapping[str, str]
    ) -> BufferedBatch:
        """Merge pairs: row i of both batches has the same key.  Override for speed; the results must equal ``merge``'s."""
        return merge_rows(older, newer, lambda a, b: self.merge(a, b, context, props), self)

    def partial_merge_batch(
        self,
        older: BufferedBatch,
        newer: BufferedBatch,
        reader_schema: pa.Schema,
        context: RecordContext[Any],
        props: Mapping[str, str],
    ) -> BufferedBatch:
        """Merge pairs of which some rows are partial; by default ``partial_merge`` pair by pair."""
        return merge_rows(older, newer, lambda a, b: self.partial_merge(a, b, reader_schema, context, props), self)

    def insert_batch(
        self, newer: BufferedBatch, context: RecordContext[Any], props: Mapping[str, str]
    ) -> BufferedBatch:
        """Return what becomes of log records that meet no base row: the same records, unless a payload class says otherwise."""
        return newer


def merge_rows(
    older: BufferedBatch,
    newer: BufferedBatch,
    merge: Callable[[BufferedRecord[Any], BufferedRecord[Any]], BufferedRecord[Any]],
    merger: RecordMerger,
) -> BufferedBatch:
    """Merge pair by pair.

    Raises:
        MergeError: the merger raised, returned something else than a BufferedRecord, or one of another key.
    """
    results = []
    for a, b in zip(older.records(), newer.records(), strict=True):
        try:
            result = merge(a, b)
        except HoodieError as error:
            raise error.located(key=a.record_key, merger=type(merger).__name__)
        except Exception as error:
            raise MergeError(
                f"The merger failed: {type(error).__name__}: {error}", key=a.record_key, merger=type(merger).__name__
            ) from error
        results.append(_checked(result, a.record_key, merger))
    return BufferedBatch.from_records(older.context, results)


def _checked(result: object, key: str, merger: RecordMerger) -> BufferedRecord[Any]:
    name = type(merger).__name__
    if not isinstance(result, BufferedRecord):
        raise MergeError(
            f"The merger returned {type(result).__name__}, not a BufferedRecord.",
            key=key,
            merger=name,
            hint="To delete a record return context.delete(record).",
        )
    if result.record_key != key:
        raise MergeError(f"The merger returned a record of another key, {result.record_key!r}.", key=key, merger=name)
    if result.record is None and not result.is_delete:
        raise MergeError("The merger returned a live record without data.", key=key, merger=name)
    return result


def _takes(function: Callable[..., Any], count: int) -> bool:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = list(inspect.signature(function).parameters.values())[1:]
    if any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters):
        return True
    positional = [p for p in parameters if p.kind in kinds]
    required = [p for p in positional if p.default is inspect.Parameter.empty]
    return len(required) <= count <= len(positional)
