"""Keys and types of the records of the metadata table that are about files (``HoodieMetadataPayload``, ``HashID``).

    partition                        type    key
    files                            1, 2    ``__all_partitions__``; partition
    column_stats                     3       column + partition + file name
    bloom_filters                    4       partition + file name
    partition_stats                  6       column + partition
    expr_index_*, of column_stats    3       column + partition + file name
    the same, of a whole partition   6       column + ``__partition_stat__`` + partition
    expr_index_*, of bloom_filters   4       partition + file name

Columns and partitions count as the Base64 text of their xxHash64 (12 characters), file names as that of their MD5 (24
characters). A table without partitions has the partition ".". So all keys of a column, or of a column's partition, have
one prefix, and a look-up reads them together.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from hoodie_py.arrow.arrays import from_texts
from hoodie_py.formats.hfile.files_partition import NO_PARTITION
from hoodie_py.formats.metadata_table.xxhash64 import hash_xxhash64

ALL_PARTITIONS_TYPE: Final = 1
FILES_TYPE: Final = 2
COLUMN_STATS_TYPE: Final = 3
BLOOM_FILTER_TYPE: Final = 4
PARTITION_STATS_TYPE: Final = 6


_HASH_BYTES = 8
_PARTITION_OF_EXPRESSIONS = "__partition_stat__"  # stands before the partition in an expression index


def encode_names(names: Iterable[str]) -> pa.Array:
    """Return columns, or identifiers of partitions, as parts of keys: the Base64 texts of their xxHash64."""
    hashes = hash_xxhash64(from_texts(list(names), pa.string())).tolist()
    return from_texts([base64.b64encode(each.to_bytes(_HASH_BYTES, "big")) for each in hashes], pa.string())


def encode_partitions(paths: Iterable[str]) -> pa.Array:
    """Return partition paths ("" of a table without partitions) as parts of keys."""
    return encode_names(path or NO_PARTITION for path in paths)


def encode_file_names(names: Iterable[str]) -> pa.Array:
    """Return file names as parts of keys: the Base64 texts of their MD5."""
    digests = (hashlib.md5(name.encode(), usedforsecurity=False).digest() for name in names)
    return from_texts([base64.b64encode(each) for each in digests], pa.string())


def make_column_keys(columns: pa.Array, partitions: pa.Array, files: pa.Array) -> pa.Array:
    """Return the keys of statistics of files, from parts of equal length."""
    return _join(columns, partitions, files)


def make_bloom_keys(partitions: pa.Array, files: pa.Array) -> pa.Array:
    """Return the keys of bloom filters, from parts of equal length."""
    return _join(partitions, files)


def make_partition_keys(columns: pa.Array, partitions: pa.Array) -> pa.Array:
    """Return the keys of statistics of partitions, from parts of equal length."""
    return _join(columns, partitions)


def make_expression_partition_keys(columns: pa.Array, partitions: pa.Array) -> pa.Array:
    """Return the keys of an expression index for whole partitions, from parts of equal length."""
    import pyarrow.compute as pc

    mark = encode_names([_PARTITION_OF_EXPRESSIONS])[0]
    return pc.binary_join_element_wise(columns, mark, partitions, "")


def make_column_prefixes(columns: Iterable[str]) -> list[str]:
    """Return the prefix of all keys of each column."""
    found: list[str] = encode_names(columns).to_pylist()
    return found


def make_column_partition_prefixes(columns: Iterable[str], partitions: Iterable[str]) -> list[str]:
    """Return the prefix of the keys of each column in each partition, also the keys of their partition statistics."""
    ends = encode_partitions(partitions).to_pylist()
    return [column + end for column in encode_names(columns).to_pylist() for end in ends]


def _join(*parts: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    return pc.binary_join_element_wise(*parts, "")
