"""HFileReader: reads a base file in the HFile format, the format of Hudi's metadata table.

Values are Avro records with the schema in the file; rows come in key order (Hudi ``HoodieNativeAvroHFileReader``).
Opening a file reads its end, which holds the index, with one request for most files. Data blocks are read one after
another. For a query of a few keys the bloom filter and the index choose the blocks, and no other block is read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property

import pyarrow as pa

from hoodie_py.arrow.arrays import from_texts, make_batch_without_columns
from hoodie_py.errors import CorruptFileError, HoodieError, UnsupportedFeatureError
from hoodie_py.files import TableFiles
from hoodie_py.formats.hfile.data_block import DataBlock
from hoodie_py.formats.hfile.reader import HFile
from hoodie_py.formats.hfile.records import decode_data_block, parse_schema
from hoodie_py.formats.parquet.bloom import BloomFilter
from hoodie_py.formats.parquet.key_range import BLOOM_KEY, BLOOM_TYPE_KEY, MAX_KEY, MIN_KEY
from hoodie_py.reader.file_slice import BaseFile
from hoodie_py.reader.read_info import WantedKeys
from hoodie_py.reader.schema_evolution.by_name import Conformer, conform_batch

_TAIL = 64 << 10  # bytes at the end that opening a file fetches
_DECODED_AT_ONCE = 8 << 20  # bytes of entries
_BLOOM_BLOCK, _BLOOM_TYPE = "bloomFilter", "bloomFilterTypeCode"
_METADATA_RECORD = "HoodieMetadataRecord"  # whose column ``key`` is the record key
_FACTS = {BLOOM_TYPE_KEY: _BLOOM_TYPE, MIN_KEY: "minRecordKey", MAX_KEY: "maxRecordKey"}


class HFileReader:
    """One open HFile; ``times`` are as for ``BaseFileReader``.

    With ``keys`` only rows of these record keys are read.

    Raises:
        CorruptFileError: the file is no HFile, or a damaged one.
        FileMissingError: the file is missing.
        UnsupportedFeatureError: an HFile or a schema of a kind that is not handled.
    """

    def __init__(
        self,
        files: TableFiles,
        base_file: BaseFile,
        times: pa.Schema | None = None,
        keys: WantedKeys | None = None,
    ) -> None:
        self.path = base_file.path
        self._wanted = keys
        try:
            self._hfile = HFile(_FileSource(files, base_file))
            self._avro = parse_schema(self._hfile).apply_times(times)
        except HoodieError as error:
            raise error.locate(path=self.path) from None
        self._keyed = self._avro.record.name.rpartition(".")[2] == _METADATA_RECORD
        self.columns = frozenset(self._avro.arrow.names)
        self.retyped: frozenset[str] = frozenset()

    @property
    def num_rows(self) -> int:
        """The number of entries."""
        return self._hfile.entries

    @property
    def schema(self) -> pa.Schema:
        """The stored columns."""
        return self._avro.arrow

    @property
    def group_rows(self) -> Sequence[int]:
        """One group: the index finds blocks by key, but does not give their numbers of rows."""
        return [self.num_rows]

    @property
    def footer(self) -> None:
        """None: HFiles have no statistics."""
        return

    @cached_property
    def key_facts(self) -> Mapping[bytes, bytes]:
        """Bloom filter, least and greatest record key, where the file has them."""
        try:
            facts = {fact.encode(): self._hfile.info[name] for fact, name in _FACTS.items() if name in self._hfile.info}
            bloom = self._hfile.read_meta(_BLOOM_BLOCK)
        except HoodieError as error:
            raise error.locate(path=self.path) from None
        return facts if bloom is None else {**facts, BLOOM_KEY.encode(): bloom}

    def read_batches(
        self,
        schema: pa.Schema,
        batch_rows: int,
        row_groups: Sequence[int] | None = None,
        *,
        coded: Collection[str] = (),
        column_threads: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """Read rows in key order with the schema's columns; columns that the file lacks are null.

        Raises:
            CorruptFileError: the file is damaged.
            UnsupportedFeatureError: a column's stored type does not widen to the wanted type.
        """
        if row_groups is not None and not row_groups:
            return
        conform = Conformer(schema)
        try:
            for block in self._find_blocks():
                for whole in self._decode(block, schema):
                    batch = conform(whole)
                    for start in range(0, batch.num_rows, batch_rows):
                        yield batch.slice(start, batch_rows)
        except HoodieError as error:
            raise error.locate(path=self.path) from None

    def _find_blocks(self) -> Iterator[DataBlock]:
        """Yield the blocks with the entries to read."""
        if self._wanted is None:
            return self._hfile.iterate_blocks()
        keys = self._wanted.coded
        if self._wanted.are_prefixes:
            return self._hfile.select_prefixes(keys)
        return self._hfile.select_keys(self._drop_absent_keys(keys))

    def _drop_absent_keys(self, keys: list[bytes]) -> list[bytes]:
        """Drop keys that the file does not have, judging by its bloom filter."""
        text, kind = (self.key_facts.get(name.encode()) for name in (BLOOM_KEY, BLOOM_TYPE_KEY))
        if text is None or not keys:
            return keys
        try:
            bloom = BloomFilter.from_text(text.decode("latin-1"), None if kind is None else kind.decode("latin-1"))
        except UnsupportedFeatureError:  # an unknown kind of filter excludes nothing
            return keys
        there = bloom.may_contain(from_texts(keys, pa.string())).tolist()
        return [key for key, may_be in zip(keys, there, strict=True) if may_be]

    def _decode(self, block: DataBlock, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        names = [name for name in schema.names if name in self.columns]
        if names:
            return decode_data_block(block, self._avro, names, _DECODED_AT_ONCE, keyed=self._keyed)
        return iter([conform_batch(make_batch_without_columns(len(block)), schema)])


def count_entries(files: TableFiles, base_file: BaseFile) -> int:
    """Return the number of entries of a base file, from its end; errors as for ``HFile``."""
    return HFile(_FileSource(files, base_file)).entries


class _FileSource:
    """The bytes of one file of a table; its end is fetched once and kept."""

    def __init__(self, files: TableFiles, base_file: BaseFile) -> None:
        self._files = files
        self._path = base_file.path
        self.size = base_file.size or files.stat(base_file.path).size
        self._tail_at = max(self.size - _TAIL, 0)
        self._tail = files.read_range(self._path, self._tail_at, self.size) if self.size else b""

    def read(self, start: int, stop: int) -> bytes | memoryview:
        """Return some bytes."""
        if start >= self._tail_at:
            data: bytes | memoryview = memoryview(self._tail)[start - self._tail_at : stop - self._tail_at]
        else:
            data = self._files.read_range(self._path, start, stop)
        if len(data) != stop - start:
            raise CorruptFileError("An HFile is shorter than its listing says.", offset=start)
        return data
