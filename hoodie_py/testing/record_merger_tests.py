"""RecordMergerTests: a conformance suite for users' mergers, run by pytest.

    from hoodie_py.testing import RecordMergerTests

    class TestMyMerger(RecordMergerTests):
        merger = MyMerger
        schema = pa.schema([("ts", pa.int64()), ("price", pa.float64())])

The tests check the rules for every merger, not what it decides:

* every pair of versions has a result;
* deletes are marked and keep their data;
* key and partition fields do not change;
* the merger reads only columns that it names;
* no argument is changed in place;
* all kinds of rows, and the row and batch forms, give the same result.

The suite reports whether a merger is associative but does not require it: versions are always merged in log order.
"""

from __future__ import annotations

import copy
import itertools
import random
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import pyarrow as pa

from hoodie_py.errors import HoodieError, MergeError
from hoodie_py.formats.config.merge_config import MergeMode
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.names import IS_DELETED_FIELD, OPERATION_FIELD, RECORD_KEY_FIELD
from hoodie_py.reader.merge.custom import CustomStrategy
from hoodie_py.reader.merge.merger import Merger, RecordMerger, merge_pair, merge_rows
from hoodie_py.reader.merge.registry import as_merger
from hoodie_py.reader.record.arrow_context import ArrowRecordContext
from hoodie_py.reader.record.batch import BufferedBatch
from hoodie_py.reader.record.delete_rules import DeleteRules
from hoodie_py.reader.record.record import BufferedRecord
from hoodie_py.reader.record.record_key import RecordKeys
from hoodie_py.reader.record.row_store import RowStore
from hoodie_py.reader.record.table_context import MappingRecordContext, TableRecordContext
from hoodie_py.testing.merger_samples import LEVELS, Samples, Version

__all__ = ["MergerReport", "RecordMergerTests"]

Pair = tuple[Version, Version]
_KEYS = RecordKeys.of(populate_meta_fields=True, record_key_fields=())
_PAIRS = 300
_TRIPLES = 300


class MergerReport(UserWarning):
    """A fact about a merger that is not a fault.

    Examples:
        >>> issubclass(MergerReport, UserWarning)  # so ``pytest -W error::hoodie_py.testing.MergerReport`` fails on one
        True
    """


class RecordMergerTests:
    """Subclass it and set ``merger``; pytest runs the tests.

    Class attributes:
        merger: the merger, a class or an instance.
        schema: the columns of a table for the merger; ``_hoodie_record_key`` is added.
        ordering_fields: the fields that order versions.
        identity_fields: the table's record key fields and partition fields, which a merge must not change.
        props: merge properties that the merger gets.
        rows: field values to try; by default made from the schema.
        examples: the number of random batches.

    Examples:
        >>> class Latest(RecordMerger):
        ...     strategy_id = "5d6b8a0e-7b2c-4d0e-9f1a-3c4d5e6f7a45"
        ...
        ...     def merge(self, older, newer, context, props):
        ...         return newer
        >>> class TestLatest(RecordMergerTests):
        ...     merger = Latest
        >>> TestLatest().test_batch_form_equals_row_form()
    """

    merger: ClassVar[Merger]
    schema: ClassVar[pa.Schema] = pa.schema(
        [("ts", pa.int64()), ("name", pa.string()), ("price", pa.float64()), ("qty", pa.int64())]
    )
    ordering_fields: ClassVar[Sequence[str]] = ("ts",)
    identity_fields: ClassVar[Sequence[str]] = ()
    props: ClassVar[Mapping[str, str]] = {}
    rows: ClassVar[Sequence[Mapping[str, Any]]] = ()
    examples: ClassVar[int] = 100

    # ------------------------------------------------------------------------------------------- a result for all pairs

    def test_a_table_can_name_it(self) -> None:
        """The merger has a strategy id or payload classes."""
        assert getattr(self._merger_instance, "strategy_id", None) or self._merger_instance.payload_classes, (
            "set strategy_id (or payload_classes), so that a table can name the merger"
        )

    def test_rows_in_order(self) -> None:
        """The newer row has the greater ordering value."""
        self._check_merges(self._samples.make_live("low"), self._samples.make_live("high"))

    def test_rows_out_of_order(self) -> None:
        """The newer row has the lower ordering value."""
        self._check_merges(self._samples.make_live("high"), self._samples.make_live("low"))

    def test_rows_of_equal_ordering(self) -> None:
        """Both rows have the same ordering value."""
        self._check_merges(self._samples.make_live("middle"), self._samples.make_live("middle"))

    def test_null_ordering(self) -> None:
        """One row or both have a null ordering value (DEFAULT_ORDERING, or the 0 of an int column)."""
        nulls, rows = self._samples.make_live(None), self._samples.make_live("middle")
        self._check_merges(nulls, rows)
        self._check_merges(rows, nulls)
        self._check_merges(nulls, nulls)

    def test_delete_with_data(self) -> None:
        """A row marked as deleted comes after a live row, with every ordering value."""
        for level in LEVELS:
            self._check_merges(self._samples.make_live("middle"), self._samples.make_data_deletes(level))

    def test_delete_without_data(self) -> None:
        """An entry of a delete block, which has no data, comes after a live row."""
        for level in LEVELS:
            self._check_merges(self._samples.make_live("middle"), self._samples.make_bare_deletes(level))

    def test_commit_time_delete(self) -> None:
        """A delete with the default ordering value comes after a live row."""
        for deletes in (self._samples.make_bare_deletes(None), self._samples.make_data_deletes(None)):
            self._check_merges(self._samples.make_live("middle"), deletes)

    def test_row_after_a_delete(self) -> None:
        """A live row comes after a delete of any kind."""
        for level in (*LEVELS, None):
            for deletes in (self._samples.make_data_deletes(level), self._samples.make_bare_deletes(level)):
                self._check_merges(deletes, self._samples.make_live("middle"))

    def test_delete_after_a_delete(self) -> None:
        """Two deletes meet, with data and without."""
        deletes = [d for level in (*LEVELS, None) for d in self._samples.make_bare_deletes(level)]
        deletes += [*self._samples.make_data_deletes("middle"), *self._samples.make_data_deletes(None)]
        self._check_merges(deletes, deletes)

    # ------------------------------------------------------------------------------------------------------------ rules

    def test_deletes_keep_their_data(self) -> None:
        """A result that deletes has the data of one of its inputs, or is one of them."""
        for older, newer, context in self._iterate_cases():
            result = self._merge(older, newer, context)
            if result.is_delete and result.record is None:
                assert result in (older, newer), (
                    f"a delete without data was made of {_describe(older)} and {_describe(newer)}: "
                    "return context.delete(record), which keeps the data"
                )

    def test_nothing_is_changed_in_place(self) -> None:
        """A merge does not change its arguments."""
        for older, newer, context in self._iterate_cases():
            before = copy.deepcopy((older, newer))
            self._merge(older, newer, context)
            assert (older, newer) == before, (
                f"merge changed its input; it was {_describe(before[0])}, {_describe(before[1])}"
            )

    def test_same_arguments_same_result(self) -> None:
        """A merge depends only on its arguments, not on earlier calls or their order."""
        cases = list(self._iterate_cases())
        first = [_to_plain(self._merge(*case), case[2]) for case in cases]
        again = list(reversed([_to_plain(self._merge(*case), case[2]) for case in reversed(cases)]))
        for (older, newer, _), one, other in zip(cases, first, again, strict=True):
            assert one == other, f"merging {_describe(older)} and {_describe(newer)} gave {one}, and later {other}"

    def test_dict_rows_and_arrow_rows_agree(self) -> None:
        """The result is the same on both kinds of rows, and its values fit their columns."""
        good = self._find_good_pairs()
        for (pair, expected), found in zip(
            good.items(), self._merge_in_arrow([*good], partial=False, rows=True), strict=True
        ):
            assert found == expected, f"{pair[0]} and {pair[1]} give {expected} over dicts and {found} over Arrow"

    def test_batch_form_equals_row_form(self) -> None:
        """merge_batch and merge give the same results for random batches."""
        if type(self._merger_instance).merge_batch is not RecordMerger.merge_batch:
            self._compare_forms([*self._find_good_pairs()], partial=False)

    def test_partial_rows(self) -> None:
        """partial_merge, if implemented, gives the same results on both kinds of rows and in both forms."""
        merger = type(self._merger_instance)
        if merger.partial_merge is RecordMerger.partial_merge:
            return
        pairs = _make_pairs(self._samples.make_partial(), self._samples.make_partial())
        for pair, found in zip(pairs, self._merge_in_arrow(pairs, partial=True, rows=True), strict=True):
            expected = self._merge_partial(pair)
            assert found == expected, f"{pair[0]} and {pair[1]} give {expected} over dicts and {found} over Arrow"
        if merger.partial_merge_batch is not RecordMerger.partial_merge_batch:
            self._compare_forms(pairs, partial=True)

    def test_mandatory_fields_suffice(self) -> None:
        """A projection-compatible merger reads only columns that it names."""
        merger = self._merger_instance
        if not merger.projection_compatible:
            return
        named = merger.mandatory_fields(self._schema, self._make_config(merger), self.props)
        assert not isinstance(named, str), "mandatory_fields must return a list of names"
        unknown = [name for name in named if name.split(".")[0] not in self._schema.names]
        assert not unknown, f"mandatory_fields names columns that the table does not have: {unknown}"
        read = {RECORD_KEY_FIELD, *self._deletes.columns, *(n.split(".")[0] for n in (*named, *self.ordering_fields))}
        narrow = pa.schema([field for field in self._schema if field.name in read])
        context = MappingRecordContext(narrow, _KEYS, self.ordering_fields, self._deletes, self._schema)
        for (old, new), (operation, ordering, _) in self._find_good_pairs().items():
            older, newer = old.make_record(context, "k"), new.make_record(context, "k")
            found = _to_plain(self._merge(older, newer, context), context)
            assert found[:2] == (operation, ordering), (
                f"merging {_describe(older)} and {_describe(newer)} depends on columns that "
                "mandatory_fields does not name"
            )

    def test_associativity_is_reported(self, record_property: Callable[[str, object], None]) -> None:
        """Reports, by a test property and a warning, whether the grouping of versions changes the result."""
        found = self._find_non_associative()
        record_property("associative", found is None)
        if found is None:
            return
        record_property("not_associative_for", found)
        with warnings.catch_warnings():
            warnings.simplefilter("always", MergerReport)
            name = type(self._merger_instance).__name__
            warnings.warn(f"{name} is not associative: {found}", MergerReport, stacklevel=2)

    # ---------------------------------------------------------------------------------------------------------- helpers

    @cached_property
    def _merger_instance(self) -> RecordMerger:
        return as_merger(self.merger)

    @property
    def _schema(self) -> pa.Schema:
        if RECORD_KEY_FIELD in self.schema.names:
            return self.schema
        return pa.schema([pa.field(RECORD_KEY_FIELD, pa.string()), *self.schema])

    @property
    def _samples(self) -> Samples:
        return Samples(self._schema, self.ordering_fields, self.rows)

    @property
    def _deletes(self) -> DeleteRules:
        return DeleteRules(IS_DELETED_FIELD in self._schema.names, OPERATION_FIELD in self._schema.names)

    def _make_config(self, merger: RecordMerger) -> TableConfig:
        strategy = getattr(merger, "strategy_id", None)
        return TableConfig(
            "conformance", 9, MergeMode.CUSTOM, strategy, None, ordering_fields=tuple(self.ordering_fields)
        )

    def _make_dict_context(self) -> MappingRecordContext:
        return MappingRecordContext(self._schema, _KEYS, self.ordering_fields, self._deletes)

    def _merge(
        self, older: BufferedRecord[Any], newer: BufferedRecord[Any], context: TableRecordContext[Any]
    ) -> BufferedRecord[Any]:
        merger = self._merger_instance
        return merge_pair(older, newer, lambda a, b: merger.merge(a, b, context, self.props), merger)

    def _check_merges(self, olders: Sequence[Version], newers: Sequence[Version]) -> None:
        """Merge each older with each newer version, and check the results as the reader does.

        Raises:
            AssertionError: a merge fails, or the reader would refuse its result.
        """
        pairs = _make_pairs(olders, newers)
        try:
            self._merge_in_arrow(pairs, partial=False, rows=True)
        except MergeError as error:
            older, newer = pairs[int(error.where["key"][1:])]
            raise AssertionError(f"merging {older} and {newer} failed: {error}") from error

    def _iterate_cases(self) -> Iterator[tuple[BufferedRecord[Any], BufferedRecord[Any], TableRecordContext[Any]]]:
        """Yield every pair that merges without error, over dict rows."""
        context = self._make_dict_context()
        for old, new in self._find_good_pairs():
            yield old.make_record(context, "k"), new.make_record(context, "k"), context

    def _find_good_pairs(self) -> dict[Pair, Any]:
        """Return pairs of all kinds of versions with their results over dict rows.

        Pairs that raise are left out, because other tests report them.
        """
        context, versions = self._make_dict_context(), self._samples.make_all()
        pairs = _make_pairs(versions, versions)
        good: dict[Pair, Any] = {}
        for old, new in random.Random(0).sample(pairs, min(_PAIRS, len(pairs))):
            try:
                result = self._merge(old.make_record(context, "k"), new.make_record(context, "k"), context)
            except HoodieError:
                continue
            good[old, new] = _to_plain(result, context)
        return good

    def _merge_partial(self, pair: Pair) -> Any:
        context, merger = self._make_dict_context(), self._merger_instance
        older, newer = (version.make_record(context, "k") for version in pair)
        merged = merge_pair(
            older, newer, lambda a, b: merger.partial_merge(a, b, context.schema, context, self.props), merger
        )
        return _to_plain(merged, context)

    def _merge_in_arrow(self, pairs: Sequence[Pair], *, partial: bool, rows: bool) -> list[Any]:
        """Merge pairs over Arrow rows, by the row form or the batch form."""
        if not pairs:
            return []
        merger = self._merger_instance
        context = ArrowRecordContext(
            RowStore(self._schema),
            self._schema,
            _KEYS,
            self.ordering_fields,
            self._deletes,
            identity=self.identity_fields,
        )
        sides = []
        for side in (0, 1):
            versions = [pair[side].make_record(context, f"k{i}") for i, pair in enumerate(pairs)]
            sides.append(BufferedBatch.from_records(context, versions))
        strategy: Any = CustomStrategy(_RowsOnly(merger) if rows else merger, self.props, partial=partial)
        result = strategy.delta_merge(*sides)
        context.focus(result.rows)
        return [_to_plain(record, context) for record in result.to_records()]

    def _compare_forms(self, pairs: Sequence[Pair], *, partial: bool) -> None:
        def check(batch: Sequence[Pair]) -> None:
            by_row = self._merge_in_arrow(batch, partial=partial, rows=True)
            by_batch = self._merge_in_arrow(batch, partial=partial, rows=False)
            for pair, row, other in zip(batch, by_row, by_batch, strict=True):
                assert row == other, f"{pair[0]} and {pair[1]} give {row} row by row and {other} in a batch"

        if pairs:
            _check_random_batches(pairs, self.examples, check)

    def _find_non_associative(self) -> str | None:
        """Describe three versions whose grouping changes the result; None if none was found."""
        versions, draw, context = self._samples.make_all(), random.Random(0), self._make_dict_context()
        for _ in range(_TRIPLES):
            a, b, c = (version.make_record(context, "k") for version in draw.choices(versions, k=3))
            try:
                left = self._merge(self._merge(a, b, context), c, context)
                right = self._merge(a, self._merge(b, c, context), context)
            except HoodieError:
                continue
            if _to_plain(left, context) != _to_plain(right, context):
                return f"{_describe(a)}, {_describe(b)}, {_describe(c)} give {_describe(left)} or {_describe(right)}"
        return None


class _RowsOnly(RecordMerger):
    """Wraps a merger without its batch forms."""

    def __init__(self, merger: RecordMerger) -> None:
        self._merger = merger

    def merge(self, older: Any, newer: Any, context: Any, props: Mapping[str, str]) -> BufferedRecord[Any]:
        return self._merger.merge(older, newer, context, props)

    def partial_merge(
        self, older: Any, newer: Any, reader_schema: pa.Schema, context: Any, props: Mapping[str, str]
    ) -> BufferedRecord[Any]:
        return self._merger.partial_merge(older, newer, reader_schema, context, props)

    def merge_batch(
        self, older: BufferedBatch, newer: BufferedBatch, context: Any, props: Mapping[str, str]
    ) -> BufferedBatch:
        return merge_rows(older, newer, lambda a, b: self.merge(a, b, context, props), self._merger)


def _make_pairs(olders: Sequence[Version], newers: Sequence[Version]) -> list[Pair]:
    return list(itertools.product(olders, newers))


def _to_plain(record: BufferedRecord[Any], context: TableRecordContext[Any]) -> Any:
    """Return a record without its key as comparable values, in which a NaN equals itself."""
    names = [name for name in context.schema.names if name != RECORD_KEY_FIELD and context.has_value(record, name)]
    data = None if record.record is None else {name: repr(context.get_value(record, name)) for name in names}
    operation = None if record.operation is None else record.operation.value
    return operation, repr(record.ordering_value), data


def _describe(record: BufferedRecord[Any]) -> str:
    data = record.record
    if isinstance(data, dict):
        data = {name: value for name, value in data.items() if name != RECORD_KEY_FIELD}
    return f"({record.operation.value if record.operation else 'row'}, ordering {record.ordering_value}, {data})"


def _check_random_batches(pairs: Sequence[Pair], examples: int, check: Callable[[Sequence[Pair]], None]) -> None:
    """Call the check with random batches; hypothesis, if installed, finds the smallest batch that fails."""
    try:
        from hypothesis import HealthCheck, given, settings
        from hypothesis import strategies as st
    except ImportError:
        draw = random.Random(0)
        for _ in range(examples):
            check(draw.choices(pairs, k=draw.randint(1, 20)))
        return
    quiet = settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    quiet(given(st.lists(st.sampled_from(pairs), min_size=1, max_size=20))(check))()
