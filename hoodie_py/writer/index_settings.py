"""How a write finds the records that a table has already: Hudi's index, as the writer's options name it.

A table does not store which index its writers use, so every writer has to be told (Hudi HoodieIndexConfig); but a
table of buckets shows that it is one, see ``table_index``. BLOOM finds the same records as SIMPLE; here both skip files
by what their footers say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.options import write as keys

DEFAULT_BUCKETS = 256  # Hudi's
_MOST_BUCKETS = 99_999_999  # file ids have eight digits for it
_SIMPLE_ENGINE = "SIMPLE"


class IndexType(StrEnum):
    """The indexes that can be used; the values are those of Hudi's option."""

    SIMPLE = "SIMPLE"
    GLOBAL_SIMPLE = "GLOBAL_SIMPLE"
    BLOOM = "BLOOM"
    GLOBAL_BLOOM = "GLOBAL_BLOOM"
    BUCKET = "BUCKET"


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """Which index, and how it works.

    Attributes:
        type: the index.
        update_partition: of a global index: whether a record whose partition changes moves there; else it stays.
        buckets: buckets of each partition, of a bucket index.
        hash_fields: the fields of the record key that choose the bucket; none for all of them.
        rules: patterns of partition paths with numbers of buckets, the first match decides; ``buckets`` for the others.
        consistent: whether the table keeps ranges of hashes for each partition; ``buckets`` is for new partitions then.
    """

    type: IndexType = IndexType.SIMPLE
    update_partition: bool = True
    buckets: int = DEFAULT_BUCKETS
    hash_fields: tuple[str, ...] = ()
    rules: tuple[tuple[str, int], ...] = ()
    consistent: bool = False

    @property
    def is_global(self) -> bool:
        """Whether a key is one record wherever in the table it is, not one a partition."""
        return self.type in (IndexType.GLOBAL_SIMPLE, IndexType.GLOBAL_BLOOM)

    @property
    def is_bucket(self) -> bool:
        """Whether the key's hash says which file group a record belongs to."""
        return self.type is IndexType.BUCKET

    def count_buckets(self, partition: str) -> int:
        """Return how many buckets a partition has.

        Raises:
            UnsupportedFeatureError: a rule's pattern has what only Java's regular expressions have.
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
        """Read Hudi's writer options; keys that are missing take Hudi's defaults.

        Raises:
            UnsupportedFeatureError: another index of Hudi's, or consistent hashing.
            InvalidQueryError: a number of buckets that is none.
        """
        named = (keys.INDEX_TYPE.read(options) or IndexType.SIMPLE).upper()
        if named not in set(IndexType):
            raise UnsupportedFeatureError(
                f"Writing with the index {named[:100]!r}.",
                hint=f"Set {keys.INDEX_TYPE} to one of {', '.join(IndexType)}.",
            )
        type_ = IndexType(named)
        if type_ is IndexType.BUCKET:
            return cls(type_, buckets=_read_bucket_count(options), hash_fields=read_hash_fields(options))
        bloom = type_ is IndexType.GLOBAL_BLOOM
        key = keys.BLOOM_UPDATE_PARTITION if bloom else keys.SIMPLE_UPDATE_PARTITION
        return cls(type_, update_partition=key.read(options))


def _read_bucket_count(options: Mapping[str, str]) -> int:
    engine = keys.BUCKET_ENGINE.read(options) or _SIMPLE_ENGINE
    if engine.upper() != _SIMPLE_ENGINE:
        raise UnsupportedFeatureError(f"Writing with a bucket index of the engine {engine[:100]!r}.")
    if keys.BUCKET_EXPRESSIONS.read(options):
        raise UnsupportedFeatureError(f"Numbers of buckets that differ between partitions ({keys.BUCKET_EXPRESSIONS}).")
    return read_given_buckets(options) or DEFAULT_BUCKETS


def read_given_buckets(options: Mapping[str, str]) -> int | None:
    """Return the number of buckets that options name.

    Raises:
        InvalidQueryError: it is none.
    """
    return keys.BUCKET_COUNT.read_given(options)


def read_hash_fields(options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the fields of the record key that choose the bucket; none for all."""
    return keys.BUCKET_HASH_FIELD.read(options)
