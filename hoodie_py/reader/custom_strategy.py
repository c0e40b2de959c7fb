"""The strategy of merge mode CUSTOM: what a RecordMerger returns, checked and compared whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

from hoodie_py.errors import HoodieError, MergeError
from hoodie_py.reader.batch import BufferedBatch
from hoodie_py.reader.merger import RecordMerger
from hoodie_py.reader.row_store import NO_ROW
from hoodie_py.reader.strategies import MergeStrategy


class CustomStrategy(MergeStrategy):
    """What a merger returns, log on log and log on base alike.

    Args:
        merger: called through its batch forms.
        props: merge properties the merger may look at.
        partial: whether a partial log block was seen, so that ``partial_merge_batch`` decides.
    """

    def __init__(self, merger: RecordMerger, props: Mapping[str, str], *, partial: bool = False) -> None:
        self.merger = merger
        self.props = props
        self._partial = partial

    def delta(self, older: BufferedBatch, newer: BufferedBatch) -> BufferedBatch:
        return self._merge(older, newer)

    def final(self, older: BufferedBatch, newer: BufferedBatch) -> BufferedBatch:
        return self._merge(older, newer)

    def after_partial_block(self) -> MergeStrategy:
        return CustomStrategy(self.merger, self.props, partial=True)

    def inserted(self, entries: BufferedBatch) -> BufferedBatch:
        context = entries.context
        context.focus(entries.rows)
        return self._called(entries, lambda: self.merger.insert_batch(entries, context, self.props), "insert_batch")

    def _merge(self, older: BufferedBatch, newer: BufferedBatch) -> BufferedBatch:
        context = older.context
        context.focus(np.concatenate([older.rows, newer.rows]))
        if self._partial:
            schema: pa.Schema = context.schema
            return self._called(
                newer,
                lambda: self.merger.partial_merge_batch(older, newer, schema, context, self.props),
                "partial_merge_batch",
            )
        return self._called(newer, lambda: self.merger.merge_batch(older, newer, context, self.props), "merge_batch")

    def _called(self, newer: BufferedBatch, call: Callable[[], BufferedBatch], method: str) -> BufferedBatch:
        """Call the merger and check that the result pairs with what was asked.

        Raises:
            MergeError: the merger raised, or returned another length, other keys or live records without data.
        """
        name = f"{type(self.merger).__name__}.{method}"
        try:
            result = call()
        except HoodieError as error:
            raise error.located(merger=type(self.merger).__name__)
        except Exception as error:
            raise MergeError(
                f"{name} failed: {type(error).__name__}: {error}", merger=type(self.merger).__name__
            ) from error
        if not isinstance(result, BufferedBatch):
            raise MergeError(f"{name} returned {type(result).__name__}, not a BufferedBatch.")
        if len(result) != len(newer):
            raise MergeError(f"{name} returned {len(result)} records for {len(newer)}.")
        if not result.keys.equals(newer.keys):
            raise MergeError(f"{name} returned records of other keys, or in another order.")
        hollow = (result.rows == NO_ROW) & ~result.deletes
        if hollow.any():
            raise MergeError(
                f"{name} returned a live record without data.", key=result.keys[int(np.argmax(hollow))].as_py()
            )
        return result
