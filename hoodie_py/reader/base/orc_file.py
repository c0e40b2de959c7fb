"""OrcFileReader: reads an ORC base file, only the columns and stripes that a read needs (Hudi ``HoodieAvroOrcReader``).

Arrow decodes whole stripes, so one stripe with the wanted columns is in memory at a time. The column streams of a
remote file are fetched in a few requests. Range and bloom filter of the keys are in the user metadata; statistics of
stripes are not used. Java 1.2.0 loses the milliseconds of times when it writes ORC; no reader can restore them.

Times are points in time, stored as the local clock time of the place where the file was written. Hudi stores UTC times
as ORC's TIMESTAMP (``AvroOrcUtils``). Java's readers convert them back by the time zone that each stripe names. Arrow's
reader returns the clock time, in nanoseconds without a zone; where a clock shows an hour twice, the first is taken.

Java Hudi 1.2.0 writes times before 1970 that are not whole milliseconds with a negative fraction. Its own reader fails
on them. Arrow's reader places them in the last millisecond of a second, so such times in Hudi's files are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import make_batch_without_columns, to_numbers
from hoodie_py.errors import CorruptFileError, FileMissingError, HoodieError, UnsupportedFeatureError
from hoodie_py.files import TableFiles
from hoodie_py.formats.limits import get_limits, raise_limit_error
from hoodie_py.formats.orc import OrcLayout, Stripe, StripeFooter, read_stripe_footer, read_tail
from hoodie_py.formats.parquet.decoder import estimate_width
from hoodie_py.reader.base.stored_columns import StoredColumns
from hoodie_py.reader.file_slice import BaseFile
from hoodie_py.reader.schema_evolution.by_name import conform_batch

if TYPE_CHECKING:
    import pyarrow.parquet as pq


_CLOCK = pa.timestamp("ns")
_INSTANT = pa.timestamp("us", "UTC")
_SECOND, _MILLISECOND = 1_000_000, 1_000
_UTC = frozenset({"UTC", "GMT", "Etc/UTC", "Etc/GMT", "Z", "Zulu", "Etc/Zulu"})


def to_instant_type(type_: pa.DataType) -> pa.DataType:
    """Return the type with UTC instants in place of clock times."""
    if type_.equals(_CLOCK):
        return _INSTANT
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(to_instant_type(field.type)) for field in type_])
    if pa.types.is_list(type_):
        return pa.list_(type_.value_field.with_type(to_instant_type(type_.value_type)))
    if pa.types.is_map(type_):
        key, item = type_.key_field, type_.item_field
        return pa.map_(
            key.with_type(to_instant_type(key.type)), item.with_type(to_instant_type(item.type)), type_.keys_sorted
        )
    return type_


def make_instants(zone: str, *, by_hudi: bool = False) -> Callable[[pa.Array], pa.Array]:
    """Return a function that converts a column of a stripe to the type of ``to_instant_type``.

    ``zone``: the stripe's time zone. ``by_hudi``: whether Hudi wrote the file. The function raises pyarrow.ArrowInvalid
    for an unknown zone, and UnsupportedFeatureError for times of Hudi's files whose fraction is lost.
    """

    def convert(array: pa.Array) -> pa.Array:
        target = to_instant_type(array.type)
        return array if target.equals(array.type) else _convert(array, target, zone, by_hudi)

    return convert


def _convert(array: pa.Array, target: pa.DataType, zone: str, by_hudi: bool) -> pa.Array:
    if target.equals(array.type):
        return array
    if pa.types.is_timestamp(target):
        return _to_instants(array, zone, by_hudi)
    if pa.types.is_struct(target):
        children = [_convert(array.field(at), target.field(at).type, zone, by_hudi) for at in range(target.num_fields)]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(target), mask=mask)
    if pa.types.is_list(target):
        children = [_convert(array.values, target.value_type, zone, by_hudi)]
    else:
        entries = pa.StructArray.from_arrays(
            [
                _convert(array.keys, target.key_type, zone, by_hudi),
                _convert(array.items, target.item_type, zone, by_hudi),
            ],
            fields=[target.key_field, target.item_field],
        )
        children = [entries]
    return pa.Array.from_buffers(
        target, len(array), array.buffers()[:2], null_count=array.null_count, offset=array.offset, children=children
    )


def _to_instants(array: pa.Array, zone: str, by_hudi: bool) -> pa.Array:
    import pyarrow.compute as pc

    micros = pc.floor_temporal(array, unit="microsecond").cast(pa.timestamp("us"))
    if by_hudi:
        _check_fractions(to_numbers(micros.cast(pa.int64())))
    if zone in _UTC:
        return micros.cast(_INSTANT)
    return pc.assume_timezone(micros, zone, ambiguous="earliest", nonexistent="latest").cast(_INSTANT)


def _check_fractions(micros: np.ndarray) -> None:
    if ((micros < 0) & (micros % _SECOND > _SECOND - _MILLISECOND)).any():
        raise UnsupportedFeatureError(
            "Times before 1970 that Hudi wrote to an ORC file: their fractions of a second are lost.",
            hint="Leave the column out.",
        )


_TAIL = 1 << 20  # bytes at the end of a file that are read first: the footer, with a bloom filter of some 430 KB
_HUDI_KEY = b"orc.avro.schema"  # the schema, in files that Hudi wrote
_OUT_OF_RANGE = "out of range for nanosecond"


class OrcFileReader:
    """One open ORC file; arguments and errors as for ``BaseFileReader``."""

    def __init__(
        self,
        files: TableFiles,
        base_file: BaseFile,
        times: pa.Schema | None = None,
    ) -> None:
        from pyarrow import orc

        self.path = base_file.path
        self._files = files
        self._ranged: Any = None
        with self._name_damage():
            source = self._open_source(files, base_file)
            self._layout = self._read_layout(source)
            self._file = orc.ORCFile(source)
            self._stored = StoredColumns(self._file.schema, times, to_instant_type)
            if self._file.nstripes != len(self._layout.stripes) or self._file.nrows != self._layout.rows:
                raise CorruptFileError("An ORC file has two footers that differ.")
        self.columns = frozenset(self._file.schema.names)

    def _open_source(self, files: TableFiles, base_file: BaseFile) -> pa.NativeFile:
        local = files.local_path(base_file.path)
        if local is not None:
            return pa.OSFile(local)
        self._ranged = files.open_file(base_file.path, base_file.size or None)
        size = self._ranged.size
        self._ranged.prefetch([(max(0, size - _TAIL), size)])
        return pa.PythonFile(self._ranged, mode="r")

    @staticmethod
    def _read_layout(source: pa.NativeFile) -> OrcLayout:
        size = source.size()
        found: OrcLayout | int = min(size, _TAIL)
        while isinstance(found, int):
            source.seek(size - found)
            found = read_tail(source.read(found), size)
        return found

    @property
    def num_rows(self) -> int:
        """The number of rows, from the footer."""
        return self._layout.rows

    @property
    def schema(self) -> pa.Schema:
        """The stored columns, with the types that batches have."""
        return self._stored.schema

    @property
    def retyped(self) -> frozenset[str]:
        """Columns of a wrong type."""
        return self._stored.retyped

    @property
    def group_rows(self) -> Sequence[int]:
        """The number of rows of each stripe."""
        return [stripe.rows for stripe in self._layout.stripes]

    @property
    def footer(self) -> pq.FileMetaData | None:
        """None: the statistics of stripes are not read."""
        return None

    @property
    def key_facts(self) -> Mapping[bytes, bytes]:
        """The user metadata."""
        return self._layout.metadata

    def read_batches(
        self,
        schema: pa.Schema,
        batch_rows: int,
        row_groups: Sequence[int] | None = None,
        *,
        coded: Collection[str] = (),
        column_threads: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """Read rows in file order with the schema's columns; as for ``OpenBaseFile``. ``row_groups`` are stripes."""
        return self._read(schema, batch_rows, row_groups)

    def _read(self, schema: pa.Schema, rows: int, groups: Sequence[int] | None) -> Iterator[pa.RecordBatch]:
        names = [name for name in schema.names if name in self.columns]
        conform = self._stored.make_conformer(schema)
        for number in range(len(self._layout.stripes)) if groups is None else groups:
            stripe = self._layout.stripes[number]
            if not names:
                for start in range(0, stripe.rows, rows):
                    yield conform_batch(make_batch_without_columns(min(rows, stripe.rows - start)), schema)
                continue
            with self._name_damage():
                footer = self._fetch(stripe, names)
                whole = self._decode(number, stripe, names)
                repair = make_instants(footer.zone, by_hudi=_HUDI_KEY in self._layout.metadata)
            for start in range(0, stripe.rows, rows):
                with self._name_damage():
                    batch = conform(whole.slice(start, rows), repair)
                yield batch
            del whole, batch  # before the next stripe is decoded
            if self._ranged is not None:
                self._ranged.drop()

    def _fetch(self, stripe: Stripe, names: Collection[str]) -> StripeFooter:
        """Read a stripe's footer; of a remote file also fetch everything that decoding these columns needs."""
        data = self._files.read_range(self.path, stripe.data_end, stripe.end)
        footer = read_stripe_footer(data, self._layout)
        if self._ranged is not None:
            self._ranged.prefetch(self._layout.find_streams(footer, stripe, names))
        return footer

    def _decode(self, number: int, stripe: Stripe, names: Sequence[str]) -> pa.RecordBatch:
        width = sum(estimate_width(self._file.schema.field(name).type) for name in names)
        if stripe.rows * width > get_limits().decoded_bytes:
            what = f"A stripe of an ORC file has {stripe.rows * width} bytes when decoded"
            raise_limit_error(CorruptFileError, what, "decoded_bytes")
        batch = self._file.read_stripe(number, names)
        if batch.num_rows != stripe.rows:
            raise CorruptFileError(f"A stripe of an ORC file has {batch.num_rows} rows, its footer says {stripe.rows}.")
        batch.validate(full=True)
        return batch

    @contextmanager
    def _name_damage(self) -> Iterator[None]:
        """Replace Arrow's exceptions by this package's errors, and name the file."""
        try:
            yield
        except HoodieError as error:
            error.locate(path=self.path)
            raise
        except FileNotFoundError as error:
            raise FileMissingError("There is no such file.", operation="read", path=self.path) from error
        except (pa.ArrowException, OSError, ValueError) as error:
            text = str(error).partition("\n")[0]
            if _OUT_OF_RANGE in text:
                raise UnsupportedFeatureError(
                    "Times before 1677 or after 2262 in an ORC file.", hint="Leave the column out.", path=self.path
                ) from error
            raise CorruptFileError(
                f"The base file cannot be read as ORC: {text}",
                path=self.path,
                hint="Restore the file, or roll back the commit that wrote it.",
            ) from error
