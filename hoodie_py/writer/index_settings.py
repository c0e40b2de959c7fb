"""How a write finds the table's records: Hudi's index, as named by the options (Hudi ``HoodieIndexConfig``).

A table does not store its index, so every writer must name the same one. Only a bucket index shows in the table, see
``table_index``. BLOOM finds the same records as SIMPLE; here both skip files by their footers. RECORD_INDEX is the
older name of GLOBAL_RECORD_LEVEL_INDEX. If the metadata table has no such index, the table is searched as with
GLOBAL_SIMPLE or SIMPLE, as in Java.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.options import write as keys

DEFAULT_BUCKETS = 256  # Hudi's default
CONSISTENT = "CONSISTENT_HASHING"  # the engine with hash ranges
_SIMPLE_ENGINE = "SIMPLE"


class IndexType(StrEnum):
    """The supported indexes; values as in Hudi's option."""

    SIMPLE = "SIMPLE"
    GLOBAL_SIMPLE = "GLOBAL_SIMPLE"
    BLOOM = "BLOOM"
    GLOBAL_BLOOM = "GLOBAL_BLOOM"
    BUCKET = "BUCKET"
    RECORD_INDEX = "RECORD_INDEX"
    GLOBAL_RECORD_LEVEL_INDEX = "GLOBAL_RECORD_LEVEL_INDEX"
    RECORD_LEVEL_INDEX = "RECORD_LEVEL_INDEX"


_GLOBAL_RECORD_INDEXES = (IndexType.RECORD_INDEX, IndexType.GLOBAL_RECORD_LEVEL_INDEX)
_GLOBAL = (IndexType.GLOBAL_SIMPLE, IndexType.GLOBAL_BLOOM, *_GLOBAL_RECORD_INDEXES)


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """The index that a write uses, and its settings.

    Attributes:
        type: the index.
        update_partition: for a global index: whether a record moves when its partition changes; else it stays.
        buckets: for a bucket index: the number of buckets of each partition.
        hash_fields: the fields of the record key that choose the bucket; empty for all of them.
        rules: patterns of partition paths with numbers of buckets; the first match decides, else ``buckets``.
        shared_ids: for a bucket index: whether a new bucket gets the file id that all non-blocking writers give it.
        consistent: whether the table keeps hash ranges for each partition; then ``buckets`` is for new partitions.
    """

    type: IndexType = IndexType.SIMPLE
    update_partition: bool = True
    buckets: int = DEFAULT_BUCKETS
    hash_fields: tuple[str, ...] = ()
    rules: tuple[tuple[str, int], ...] = ()
    consistent: bool = False
    shared_ids: bool = False

    @property
    def is_global(self) -> bool:
        """Whether a record key is unique in the whole table, not only in its partition."""
        return self.type in _GLOBAL

    @property
    def is_record_index(self) -> bool:
        """Whether the metadata table locates the records."""
        return self.type in (*_GLOBAL_RECORD_INDEXES, IndexType.RECORD_LEVEL_INDEX)

    @property
    def is_bucket(self) -> bool:
        """Whether the key's hash chooses the file group of a record."""
        return self.type is IndexType.BUCKET

    def count_buckets(self, partition: str) -> int:
        """Return the number of buckets of a partition.

        Raises:
            UnsupportedFeatureError: a rule's pattern uses syntax that only Java's regular expressions have.
        """
        for pattern, count in self.rules:
            try:
                matches = pc.match_substring_regex(pa.array([partition], pa.string()), pattern)[0].as_py()
            except pa.ArrowInvalid as error:
                raise UnsupportedFeatureError(f"The pattern {pattern[:100]!r} in a rule for buckets.") from error
            if matches:
                return count
        return self.buckets

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> IndexSettings:
        """Read Hudi's writer options; missing keys get Hudi's defaults.

        Raises:
            UnsupportedFeatureError: an index of Hudi, or an engine of bucket indexes, that is not handled.
            InvalidQueryError: the number of buckets is not valid.
        """
        named = (keys.INDEX_TYPE.read(options) or IndexType.SIMPLE).upper()
        if named not in set(IndexType):
            raise UnsupportedFeatureError(
                f"Writing with the index {named[:100]!r}.",
                hint=f"Set {keys.INDEX_TYPE} to one of {', '.join(IndexType)}.",
            )
        type_ = IndexType(named)
        if type_ is IndexType.BUCKET:
            engine, fields = _read_engine(options), keys.BUCKET_HASH_FIELD.read(options)
            return cls(type_, buckets=_read_count(options), hash_fields=fields, consistent=engine == CONSISTENT)
        if type_ is IndexType.GLOBAL_BLOOM:
            return cls(type_, update_partition=keys.BLOOM_UPDATE_PARTITION.read(options))
        if type_ in _GLOBAL_RECORD_INDEXES:
            return cls(type_, update_partition=keys.RECORD_UPDATE_PARTITION.read(options))
        return cls(type_, update_partition=keys.SIMPLE_UPDATE_PARTITION.read(options))

    def fall_back(self, options: Mapping[str, str]) -> IndexSettings:
        """Return the index that replaces a record index which a table lacks."""
        type_ = IndexType.GLOBAL_SIMPLE if self.is_global else IndexType.SIMPLE
        return IndexSettings(type_, update_partition=keys.SIMPLE_UPDATE_PARTITION.read(options))


def _read_engine(options: Mapping[str, str]) -> str:
    engine = (keys.BUCKET_ENGINE.read(options) or _SIMPLE_ENGINE).upper()
    if engine not in (_SIMPLE_ENGINE, CONSISTENT):
        raise UnsupportedFeatureError(f"Writing with a bucket index of the engine {engine[:100]!r}.")
    return engine


def _read_count(options: Mapping[str, str]) -> int:
    if keys.BUCKET_EXPRESSIONS.read(options):
        raise UnsupportedFeatureError(f"Numbers of buckets that differ between partitions ({keys.BUCKET_EXPRESSIONS}).")
    return keys.BUCKET_COUNT.read_given(options) or DEFAULT_BUCKETS
