"""Check that the table writes record keys and partition paths as this write would.

If they differ, updates double rows and deletes find nothing. Hudi's writers make several texts of one value:

* Java's row writer (``bulk_insert``) writes timestamps in keys as texts; its other writers write their microseconds,
  unless an option asks for texts. Flink writes dates and timestamps in other ways.
* Some releases name the field in a complex key of one field, others do not.

The table does not record its spelling. So some of its rows are read, and their keys made again. A table without meta
fields has no keys to compare, and its partition paths are taken from its files.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import repeat_value, to_booleans
from hoodie_py.arrow.fields import find_field_type, find_top_level_name
from hoodie_py.errors import InvalidQueryError
from hoodie_py.formats.names import PARTITION_PATH_FIELD, RECORD_KEY_FIELD
from hoodie_py.options import write as write_keys
from hoodie_py.reader.file_group import FileGroupReader
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.reader.read_info import ReadOptions
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.index.misread_partitions import refuse_twins
from hoodie_py.writer.keygen.generator import KeyGenerator
from hoodie_py.writer.output_schema import load_output_schema

_SLICES, _ROWS = 4, 64  # number of slices to check, and of rows in each


def check_spelling(
    snapshot: Snapshot,
    options: Mapping[str, str],
    made_of: Collection[str],
    partitions: Sequence[str] = (),
    merger: Merger | None = None,
) -> None:
    """Refuse a write that spells keys differently from the table.

    Only the fields ``made_of`` are checked, from which the write makes keys and partition paths.

    Raises:
        InvalidQueryError: keys differ; names both texts and the option to set.
        UnsupportedFeatureError: readers show the rows of another partition with the same value.
        HoodieError: the table cannot be read.
    """
    if snapshot.instant is None or not made_of:
        return
    refuse_twins(snapshot, partitions)
    generator = KeyGenerator.from_snapshot(snapshot, options)
    schema = snapshot.schema.arrow
    known = {name for name in made_of if find_field_type(schema, name) is not None}
    if not known.issuperset(generator.key_fields):
        generator = replace(generator, key_fields=())
    if not known.issuperset(generator.partition_fields):
        generator = replace(generator, partition_fields=(), times={})
    if generator.virtual:
        generator = replace(generator, key_fields=())
    if not generator.columns or not _may_differ(generator, schema):
        return
    wanted = [
        *(() if generator.virtual else (RECORD_KEY_FIELD, PARTITION_PATH_FIELD)),
        *dict.fromkeys(find_top_level_name(schema, name) for name in generator.columns),
    ]
    for file_slice in _sample_slices(snapshot, partitions):
        found = _read_first_rows(snapshot, file_slice, wanted, merger, options)
        if found.num_rows:
            _compare(found, generator, file_slice)


def _may_differ(generator: KeyGenerator, schema: pa.Schema) -> bool:
    """Whether Hudi's writers make different texts of these fields' values."""
    if generator.times or (generator.named and len(generator.key_fields) == 1):
        return True
    types = [find_field_type(schema, name) for name in generator.columns]
    plain = (pa.types.is_string, pa.types.is_integer, pa.types.is_boolean)
    return not all(any(is_plain(each) for is_plain in plain) for each in types)


def _sample_slices(snapshot: Snapshot, partitions: Sequence[str]) -> list[FileSlice]:
    """Return some file slices, oldest first, of the given partitions or of the newest commit's."""
    slices = snapshot.view.list_slices(None, list(partitions)) if partitions else []
    if not slices:
        newest = _find_newest_partitions(snapshot)
        slices = snapshot.view.list_slices(None, newest) if newest else []
    slices = sorted(slices, key=lambda each: each.base_instant)
    step = max(1, -(-len(slices) // (_SLICES - 1)))
    return [*slices[:-1:step], *slices[-1:]]


def _find_newest_partitions(snapshot: Snapshot) -> list[str]:
    for instant in reversed(snapshot.timeline.list_completed_writes()):
        found = {stat.partition_path for stat in snapshot.timeline.read_metadata(instant).iterate_stats() if stat.path}
        if found:
            return sorted(found)
    return []


def _read_first_rows(
    snapshot: Snapshot,
    file_slice: FileSlice,
    columns: list[str],
    merger: Merger | None,
    options: Mapping[str, str],
) -> pa.Table:
    """Read the first rows of a base file, or of a log if there is none, in the types of files."""
    alone = file_slice if file_slice.base_file is None else replace(file_slice, log_files=())
    schema = load_output_schema(snapshot)
    info = snapshot.read_info(alone).as_stored(schema.arrow, schema.defaults)
    with FileGroupReader(alone, info, columns, merger, ReadOptions(options=options)) as reader:
        for batch in reader.to_batches():
            if batch.num_rows:
                return pa.Table.from_batches([batch.slice(0, _ROWS)])
    return pa.table({})


def _compare(found: pa.Table, generator: KeyGenerator, file_slice: FileSlice) -> None:
    """Refuse rows if one record key differs, or if all partition paths differ."""
    place = {"file_group": file_slice.file_id, "partition": file_slice.partition_path or None}
    if generator.key_fields:
        stored, made = found.column(RECORD_KEY_FIELD), generator.make_keys(found)
        other = to_booleans(pc.fill_null(pc.not_equal(stored, made), True).combine_chunks())
        if other.any():
            at = int(other.argmax())
            raise _make_error("record keys", stored[at].as_py(), made[at].as_py(), generator, place)
    if generator.partition_fields:
        made = generator.make_partition_paths(found)
        if generator.virtual:
            stored = pa.chunked_array([repeat_value(file_slice.partition_path, pa.string(), len(made))])
        else:
            stored = found.column(PARTITION_PATH_FIELD)
        other = to_booleans(pc.fill_null(pc.not_equal(stored, made), True).combine_chunks())
        if other.all():  # a single path may differ: a global index may leave a record in its first partition
            raise _make_error("partition paths", stored[0].as_py(), made[0].as_py(), generator, place)


def _make_error(
    what: str, stored: str | None, made: str | None, generator: KeyGenerator, place: dict[str, str | None]
) -> InvalidQueryError:
    told = "true" if generator.text_zone is None else "false"
    hint = f"Where they are made of timestamps, try {write_keys.CONSISTENT_TIMESTAMPS}={told}"
    if generator.text_zone is not None:
        hint += ", or another time zone: the text of a timestamp is in that of its writer"
    if generator.named and len(generator.key_fields) == 1:
        hint = f"Set {write_keys.COMPLEX_KEY_VALUE_ONLY} to what the keys show"
    return InvalidQueryError(
        f"The table spells {what} otherwise than this write: a row that has {str(stored)[:200]!r} would get "
        f"{str(made)[:200]!r}, so updates would double rows and deletes find none.",
        hint=f"{hint}. Else write with the engine that made the table.",
        **place,
    )
