"""Find the index of a table from its files: a bucket index shows there.

Tables do not store their index. But file ids of buckets have their own form, and the table keeps ranges of hashes, or
the numbers of buckets if these differ between partitions. A write with another index would put keys where Java and
Flink never look for them.

The number of buckets follows from the keys: bucket = hash modulo number, so the number divides every hash minus its
bucket. A given number that contradicts the keys is refused. If several numbers fit, the options must name one.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.fields import find_field_type
from hoodie_py.errors import InvalidQueryError, InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.config.hashing_metadata import (
    BUCKET_FOLDER,
    CONSISTENT_FOLDER,
    RULES_FOLDER,
    RULES_SUFFIX,
    BucketRules,
    parse_instant,
)
from hoodie_py.options import write as keys
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.table.bounded import read_bounded
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.view.visibility import GroupKey
from hoodie_py.writer.index.bucket import compute_hashes, is_likely_bucket, parse_bucket
from hoodie_py.writer.index.bucket_locations import read_first_keys, sample_slices
from hoodie_py.writer.index.key_lookup import KeyLookup
from hoodie_py.writer.index.record_index_lookup import has_record_index
from hoodie_py.writer.index_settings import CONSISTENT, DEFAULT_BUCKETS, IndexSettings, IndexType
from hoodie_py.writer.records import WriteOperation
from hoodie_py.writer.settings import WriteSettings
from hoodie_py.writer.timeline.session import WriteSession

_BUCKET, _SIMPLE = "BUCKET", "SIMPLE"
_BITS_OF_AN_ID = 32  # the first eight characters of a random file id
_CERTAIN_BITS = 18  # accept ids as buckets if random ids look like that at most once in 2^18 tables
_COMMITS = 8  # commits whose file ids are read
_MOST_SLICES = 16  # slices whose keys are read for the number of buckets
_SURE_BITS = 32  # a decision about a number of buckets is wrong at most once in 2^32 tables


class _FileGroupKind(Enum):
    NOTHING, OTHER, BUCKETS, RANGES = auto(), auto(), auto(), auto()


def resolve_table_index(
    session: WriteSession,
    snapshot: Snapshot,
    operation: WriteOperation,
    merger: Merger | None = None,
) -> WriteSession:
    """Return a session whose settings have the index that the table shows, else the options' index. A delete does not
    need the number of buckets.

    Raises:
        InvalidQueryError: the options contradict the table, or do not say enough.
        InvalidTableError: rules for numbers of buckets are missing.
        UnsupportedFeatureError: the index is not handled.
    """
    settings = session.settings
    index = _find_index(snapshot, settings, operation, merger)
    if settings.non_blocking and index.is_bucket and not index.consistent:
        index = replace(index, shared_ids=True)
    return replace(session, settings=replace(settings, table_index=index))


def _find_index(
    snapshot: Snapshot,
    settings: WriteSettings,
    operation: WriteOperation,
    merger: Merger | None,
) -> IndexSettings:
    groups = _find_newest_groups(snapshot)
    names = {each.name for each in snapshot.files.list_or_empty(BUCKET_FOLDER)} if groups else set[str]()
    shown = _classify(groups, names)
    options = settings.options
    if not snapshot.config.populate_meta_fields:
        hashed = shown in (_FileGroupKind.BUCKETS, _FileGroupKind.RANGES)
        if hashed or IndexSettings.from_options(options).is_bucket:
            _refuse_hashed_dates(snapshot)
    if shown in (_FileGroupKind.NOTHING, _FileGroupKind.OTHER):
        index = IndexSettings.from_options(options)
        if index.is_bucket and shown is _FileGroupKind.OTHER:
            raise _make_contradiction_error(snapshot, keys.INDEX_TYPE, _BUCKET, "file groups that are no buckets")
        if index.is_record_index and not has_record_index(snapshot, index):
            return index.fall_back(options)
        if index.consistent and not snapshot.config.is_merge_on_read:
            raise InvalidQueryError(
                f"{keys.BUCKET_ENGINE}={CONSISTENT} needs a merge-on-read table.",
                hint=f"Set {keys.BUCKET_ENGINE} to {_SIMPLE}: Java has no consistent hashing of such tables.",
                table=snapshot.config.name,
            )
        return index
    given = keys.INDEX_TYPE.read(options)
    if given is not None and given.upper() != _BUCKET:
        raise _make_contradiction_error(snapshot, keys.INDEX_TYPE, given, "the file groups of a bucket index")
    engine = (keys.BUCKET_ENGINE.read(options) or "").upper()
    if shown is _FileGroupKind.RANGES:
        if engine not in ("", CONSISTENT):
            raise _make_contradiction_error(
                snapshot, keys.BUCKET_ENGINE, engine, "ranges of hashes (consistent hashing)"
            )
        buckets = keys.BUCKET_COUNT.read_given(options) or DEFAULT_BUCKETS
        return IndexSettings(
            IndexType.BUCKET, buckets=buckets, hash_fields=keys.BUCKET_HASH_FIELD.read(options), consistent=True
        )
    if engine not in ("", _SIMPLE):
        raise _make_contradiction_error(snapshot, keys.BUCKET_ENGINE, engine, "buckets without ranges of hashes")
    lookup = KeyLookup(snapshot, replace(settings, table_index=IndexSettings()), merger)
    fields = keys.BUCKET_HASH_FIELD.read(options)
    index = IndexSettings(IndexType.BUCKET, hash_fields=fields)
    evidence = _BucketEvidence.collect(snapshot, lookup, groups, fields)
    rules = _load_rules(snapshot, options, kept=RULES_FOLDER.split("/")[2] in names)
    if rules is not None:
        return replace(index, buckets=rules.default, rules=rules.rules)
    number = _find_bucket_count(snapshot, options, evidence, named=given is not None)
    if number is None and operation is WriteOperation.DELETE:
        return IndexSettings()  # deletes find their keys in the files themselves
    if number is None:
        raise InvalidQueryError(
            "The table has the file groups of a bucket index, and its keys do not tell how many buckets there are.",
            hint=_make_hint(evidence),
            table=snapshot.config.name,
        )
    return replace(index, buckets=number)


def find_bucket_engine(snapshot: Snapshot) -> str | None:
    """Return Hudi's name for the kind of buckets that the table's file groups are; None if they are none."""
    groups = _find_newest_groups(snapshot)
    names = {each.name for each in snapshot.files.list_or_empty(BUCKET_FOLDER)} if groups else set[str]()
    return {_FileGroupKind.BUCKETS: _SIMPLE, _FileGroupKind.RANGES: CONSISTENT}.get(_classify(groups, names))


def _refuse_hashed_dates(snapshot: Snapshot) -> None:
    """Refuse buckets of keys that have dates, without meta fields: Java hashes another text than its readers compare.

    Raises:
        UnsupportedFeatureError: names the column.
    """
    config = snapshot.config
    for name in config.record_key_fields:
        type_ = find_field_type(snapshot.schema.arrow, name)
        if type_ is not None and pa.types.is_date(type_):
            raise UnsupportedFeatureError(
                "Writing with a bucket index to a table without meta fields whose record key has a date.",
                column=name,
                table=config.name,
            )


def _find_newest_groups(snapshot: Snapshot) -> list[GroupKey]:
    """Return file groups of the newest commits; reading stops once the kind of their ids is clear."""
    found: dict[GroupKey, None] = {}
    read = 0
    for instant in reversed(snapshot.timeline.list_completed_writes()):
        stats = snapshot.timeline.read_metadata(instant).iterate_stats()
        groups = [(each.partition_path, each.file_id) for each in stats if each.path and each.file_id]
        found.update(dict.fromkeys(groups))
        read += bool(groups)
        if found and (read >= _COMMITS or _has_bucket_ids([each[1] for each in found]) is not None):
            break
    return list(found)


def _classify(groups: list[GroupKey], names: Collection[str]) -> _FileGroupKind:
    if not groups:
        return _FileGroupKind.NOTHING
    if CONSISTENT_FOLDER.rpartition("/")[2] in names:
        return _FileGroupKind.RANGES
    return _FileGroupKind.BUCKETS if _has_bucket_ids([each[1] for each in groups]) else _FileGroupKind.OTHER


def _has_bucket_ids(file_ids: Iterable[str]) -> bool | None:
    """Say whether file ids are those of buckets; None if random ids might look the same."""
    ids = list(file_ids)
    numbers = [parse_bucket(each) for each in ids]
    known = [each for each in numbers if each is not None]
    likely = sum(map(is_likely_bucket, ids))
    if len(known) < len(numbers):  # a writer with another index may have added groups to a table of buckets
        return likely > 1 and 2 * likely >= len(numbers)
    bits = len(known) * (_BITS_OF_AN_ID - math.log2(max(known) + 1))
    return True if bits >= _CERTAIN_BITS else None


@dataclass(frozen=True, slots=True)
class _BucketEvidence:
    """Hold what keys of the table tell about the number of buckets.

    Attributes:
        factor: greatest common divisor of each hash minus its bucket; the number must divide it. 0 for no key.
        occupied: the buckets that there are.
        rests: the different hashes, each less its bucket. Equal ones tell no more than one: the keys of a partition may
            be those of another, and keys that follow each other lie in buckets that do.
        single: whether it is certain which field is hashed.
    """

    factor: int
    occupied: frozenset[int]
    rests: frozenset[int]
    single: bool

    @classmethod
    def collect(
        cls, snapshot: Snapshot, lookup: KeyLookup, groups: list[GroupKey], fields: tuple[str, ...]
    ) -> _BucketEvidence:
        """Read keys of some file groups."""
        partitions = list(dict.fromkeys(path for path, _ in groups))[:_MOST_SLICES]
        there = snapshot.view.list_slices(None, partitions)
        slices = [each for each in there if parse_bucket(each.file_id) is not None]
        ids = [*(each.file_id for each in slices), *(file_id for _, file_id in groups)]
        buckets = frozenset(parse_bucket(each) or 0 for each in ids)
        hashed = fields or snapshot.config.record_key_fields
        single = len(snapshot.config.record_key_fields) == 1 or bool(fields)
        found = cls(0, buckets, frozenset(), single)
        for file_slice in sample_slices(slices, _MOST_SLICES):
            found = found.add_keys(file_slice, read_first_keys(lookup, file_slice), hashed)
            if len(found.numbers) == 1:
                break
        return found

    def add_keys(self, file_slice: FileSlice, keys_: pa.ChunkedArray, fields: tuple[str, ...]) -> _BucketEvidence:
        """Return the evidence with the keys of one more file slice."""
        bucket = parse_bucket(file_slice.file_id) or 0
        rests = np.unique(np.abs(compute_hashes(keys_, fields) - bucket))
        factor = int(np.gcd.reduce(rests, initial=self.factor))
        return replace(self, factor=factor, rests=self.rests.union(rests.tolist()))

    def is_possible(self, number: int) -> bool:
        """Whether a number of buckets fits all keys, and not by mere chance."""
        if number <= max(self.occupied) or self.factor % number:
            return False
        if not self.factor or self.is_uneven:
            return True
        return len(self.rests) * math.log2(self.factor / number) < _SURE_BITS

    @property
    def is_uneven(self) -> bool:
        """Whether so few buckets are occupied that the hashes are not random: then no number is a matter of chance.

        That is so where one key field follows from another, which leaves the last bits of all hashes the same.
        """
        occupied, number = len(self.occupied), self.factor
        if occupied >= number:
            return False
        choices = math.lgamma(number + 1) - math.lgamma(occupied + 1) - math.lgamma(number - occupied + 1)
        return len(self.rests) * math.log2(number / occupied) - choices / math.log(2) >= _SURE_BITS

    @property
    def numbers(self) -> list[int]:
        """The numbers of buckets that fit the keys, with a 0 at the end if they are not certain; empty for no keys."""
        if not self.factor:
            return []
        found = [number for number in _list_divisors(self.factor) if self.is_possible(number)]
        sure = self.single or all(len(self.rests) * math.log2(each) >= _SURE_BITS for each in found)
        return found if sure and not self.is_uneven else [*found, 0]

    @property
    def contradicts_all(self) -> bool:
        """Whether no number of buckets fits the keys."""
        return self.factor > 0 and not any(self.is_possible(each) for each in _list_divisors(self.factor))


def _list_divisors(number: int) -> list[int]:
    small = [each for each in range(1, math.isqrt(number) + 1) if number % each == 0]
    return sorted({*small, *(number // each for each in small)})


def _find_bucket_count(
    snapshot: Snapshot, options: Mapping[str, str], evidence: _BucketEvidence, *, named: bool
) -> int | None:
    """Return the number of buckets; None if neither options nor keys tell."""
    given = keys.BUCKET_COUNT.read_given(options)
    if given is not None:
        if not evidence.is_possible(given):
            raise InvalidQueryError(
                f"{keys.BUCKET_COUNT} says {given}, but the table does not have its keys in {given} buckets.",
                hint=_make_hint(evidence),
                table=snapshot.config.name,
            )
        return given
    found = evidence.numbers
    if len(found) == 1 and found[0]:
        return found[0]
    return DEFAULT_BUCKETS if named and evidence.is_possible(DEFAULT_BUCKETS) else None


def _load_rules(snapshot: Snapshot, options: Mapping[str, str], *, kept: bool) -> BucketRules | None:
    """Return the numbers of buckets that differ between partitions, from the table or the options."""
    given, told = keys.BUCKET_COUNT.read_given(options), keys.BUCKET_EXPRESSIONS.read(options)
    said = None if told is None else BucketRules.from_expressions(told, given or DEFAULT_BUCKETS)
    if not kept:
        return said
    pending = {each.request_time for each in snapshot.timeline.timeline.select_pending()}
    names = [each.name for each in snapshot.files.list_or_empty(RULES_FOLDER) if each.name.endswith(RULES_SUFFIX)]
    in_force = [name for name in sorted(names) if parse_instant(name) not in pending]
    if not in_force:
        raise InvalidTableError("The rules for numbers of buckets are missing.", path=RULES_FOLDER)
    rules = BucketRules.from_bytes(read_bounded(snapshot.files, f"{RULES_FOLDER}/{in_force[-1]}"))
    if given is not None and given != rules.default:
        raise _make_contradiction_error(
            snapshot, keys.BUCKET_COUNT, str(given), f"{rules.default} where no rule matches"
        )
    if said is not None and said.rules != rules.rules:
        stored = ";".join(f"{pattern},{count}" for pattern, count in rules.rules)
        raise _make_contradiction_error(snapshot, keys.BUCKET_EXPRESSIONS, str(told), stored)
    return rules


def _make_contradiction_error(snapshot: Snapshot, key: str, said: str, has: str) -> InvalidQueryError:
    return InvalidQueryError(
        f"{key} says {said[:100]!r}, but the table has {has[:200]}.",
        hint="Leave the option out, or give what the table was written with: other writers would not find the keys.",
        table=snapshot.config.name,
    )


def _make_hint(evidence: _BucketEvidence) -> str:
    told = [each for each in evidence.numbers if each]
    if len(told) == 1 and evidence.single:
        return f"The keys say {told[0]}."
    if evidence.contradicts_all:
        return (
            f"No number explains all of them: set {keys.BUCKET_HASH_FIELD} to the fields of the key that choose the "
            f"bucket, or {keys.BUCKET_EXPRESSIONS} where partitions have different numbers."
        )
    return f"Set {keys.BUCKET_COUNT} to what the table was written with."
