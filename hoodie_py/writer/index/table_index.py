"""Find the index of a table from its files: a bucket index shows there.

Tables do not store their index. But file ids of buckets have their own form, and the table keeps hash ranges, or the
numbers of buckets if these differ between partitions. A write with another index would put keys where Java and Flink
never look for them.

A random file id may look like a bucket's by chance. So all file groups of the partitions that the newest commits wrote
to are looked at. If these are too few to be sure, other partitions are looked at, too, and the keys must agree with a
number of buckets.

The number of buckets follows from the keys: bucket = hash modulo number, so the number divides every hash minus its
bucket. A given number that contradicts the keys is refused. If several numbers fit, the options must name one.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import partial

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.fields import find_field_type
from hoodie_py.errors import InvalidQueryError, InvalidTableError, UnsupportedFeatureError
from hoodie_py.files import ask_together
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
from hoodie_py.writer.index.bucket import compute_hashes, has_composite, is_likely_bucket, parse_bucket
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
_MOST_SLICES = 16  # partitions that are listed, and slices whose keys are read for the number of buckets
_SURE_BITS = 32  # a decision is wrong at most once in 2^32 tables: beyond it, nothing more is read


class _FileGroupKind(Enum):
    NOTHING, OTHER, BUCKETS, RANGES = auto(), auto(), auto(), auto()


def resolve_table_index(
    session: WriteSession,
    snapshot: Snapshot,
    operation: WriteOperation,
    merger: Merger | None = None,
) -> WriteSession:
    """Return a session whose settings contain the index that the table shows, else the options' index.

    A delete does not need the number of buckets.

    Raises:
        InvalidQueryError: the options contradict the table, or are not sufficient.
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
    found = _FoundGroups.find(snapshot)
    shown, evidence = found.kind, None
    options = settings.options
    if shown is _FileGroupKind.BUCKETS:
        lookup = KeyLookup(snapshot, replace(settings, table_index=IndexSettings()), merger)
        evidence = _BucketEvidence.collect(snapshot, lookup, found, keys.BUCKET_HASH_FIELD.read(options))
        if not found.is_sure and evidence.disproves_buckets:
            shown = _FileGroupKind.OTHER
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
    return _find_bucket_index(snapshot, options, operation, found, evidence)


def _find_bucket_index(
    snapshot: Snapshot,
    options: Mapping[str, str],
    operation: WriteOperation,
    found: _FoundGroups,
    evidence: _BucketEvidence | None,
) -> IndexSettings:
    """Return the bucket index that the table shows. ``evidence`` is None for hash ranges."""
    given = keys.INDEX_TYPE.read(options)
    if given is not None and given.upper() != _BUCKET:
        raise _make_contradiction_error(snapshot, keys.INDEX_TYPE, given, "the file groups of a bucket index")
    engine = (keys.BUCKET_ENGINE.read(options) or "").upper()
    if evidence is None:
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
    index = IndexSettings(IndexType.BUCKET, hash_fields=keys.BUCKET_HASH_FIELD.read(options))
    rules = _load_rules(snapshot, options, kept=RULES_FOLDER.split("/")[2] in found.names)
    if rules is not None:
        return replace(index, buckets=rules.default, rules=rules.rules)
    number = _find_bucket_count(snapshot, options, evidence, named=given is not None, sure=found.is_sure)
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
    """Return Hudi's name for the kind of buckets of the table's file groups; None if they are no buckets."""
    kind = _FoundGroups.find(snapshot).kind
    return {_FileGroupKind.BUCKETS: _SIMPLE, _FileGroupKind.RANGES: CONSISTENT}.get(kind)


def _refuse_hashed_dates(snapshot: Snapshot) -> None:
    """Refuse buckets of keys with dates in tables without meta fields.

    Java hashes other texts of such keys than its readers compare.

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


@dataclass(frozen=True, slots=True)
class _FoundGroups:
    """What the files of a table show about its index.

    Attributes:
        kind: the kind of the file groups.
        names: names in the table's folder of bucket indexes.
        file_ids: for buckets: the file ids of the newest commits and of the slices.
        slices: for buckets: the file slices of partitions that these commits wrote to, and of others if needed.
    """

    kind: _FileGroupKind
    names: frozenset[str] = frozenset()
    file_ids: tuple[str, ...] = ()
    slices: tuple[FileSlice, ...] = ()

    @classmethod
    def find(cls, snapshot: Snapshot) -> _FoundGroups:
        """Read the newest commits, and list their partitions if the file ids look like buckets."""
        if not snapshot.timeline.list_completed_writes():
            return cls(_FileGroupKind.NOTHING)
        groups, folder = ask_together(
            snapshot.files,
            partial(_find_newest_groups, snapshot),
            partial(snapshot.files.list_or_empty, BUCKET_FOLDER),
        )
        if not groups:
            return cls(_FileGroupKind.NOTHING)
        names = frozenset(each.name for each in folder)
        if CONSISTENT_FOLDER.rpartition("/")[2] in names:
            return cls(_FileGroupKind.RANGES, names)
        ids = [file_id for _, file_id in groups]
        if _has_bucket_ids(ids, _CERTAIN_BITS):
            partitions = list(dict.fromkeys(path for path, _ in groups))[:_MOST_SLICES]
            found = _add_slices(snapshot, cls(_FileGroupKind.BUCKETS, names, tuple(ids)), partitions)
            if not found.is_sure:
                others = [path for path in snapshot.view.list_paths() if path not in partitions]
                found = _add_slices(snapshot, found, others[: _MOST_SLICES - len(partitions)])
            if _has_bucket_ids(found.file_ids, _CERTAIN_BITS):
                return found
        return cls(_FileGroupKind.OTHER, names)

    @property
    def is_sure(self) -> bool:
        """Whether the file ids cannot be random."""
        return _has_bucket_ids(self.file_ids, _SURE_BITS) is not None


def _add_slices(snapshot: Snapshot, found: _FoundGroups, partitions: list[str]) -> _FoundGroups:
    slices = tuple(snapshot.view.list_slices(None, partitions))
    ids = dict.fromkeys([*found.file_ids, *(each.file_id for each in slices)])
    return replace(found, file_ids=tuple(ids), slices=(*found.slices, *slices))


def _find_newest_groups(snapshot: Snapshot) -> list[GroupKey]:
    """Return file groups of the newest commits; reading stops once the kind of their ids is clear."""
    found: dict[GroupKey, None] = {}
    read = 0
    for instant in reversed(snapshot.timeline.list_completed_writes()):
        stats = snapshot.timeline.read_metadata(instant).iterate_stats()
        groups = [(each.partition_path, each.file_id) for each in stats if each.path and each.file_id]
        found.update(dict.fromkeys(groups))
        read += bool(groups)
        if found and (read >= _COMMITS or _has_bucket_ids([each[1] for each in found], _SURE_BITS) is not None):
            break
    return list(found)


def _has_bucket_ids(file_ids: Collection[str], needed_bits: int) -> bool | None:
    """Whether file ids are buckets'; None if random ids look like this more than once in 2^bits times."""
    numbers = [parse_bucket(each) for each in file_ids]
    known = [each for each in numbers if each is not None]
    likely = sum(map(is_likely_bucket, file_ids))
    if len(known) < len(numbers):  # a writer with another index may have added groups to a table of buckets
        return likely > 1 and 2 * likely >= len(numbers)
    bits = len(known) * (_BITS_OF_AN_ID - math.log2(max(known) + 1))
    return True if bits >= needed_bits else None


@dataclass(frozen=True, slots=True)
class _BucketEvidence:
    """What keys of the table show about the number of buckets.

    Attributes:
        factor: greatest common divisor of all hashes minus their buckets; the number must divide it. 0 without keys.
        occupied: the existing buckets.
        rests: the different hashes minus their buckets. Equal ones prove no more than one: the keys of a partition may
            be those of another, and successive keys lie in successive buckets.
        single: whether it is certain which field is hashed.
        plain: whether no key contains a comma and a colon; releases of Hudi differ about the hashes of such keys.
    """

    factor: int
    occupied: frozenset[int]
    rests: frozenset[int]
    single: bool
    plain: bool = True

    @classmethod
    def collect(
        cls, snapshot: Snapshot, lookup: KeyLookup, groups: _FoundGroups, fields: tuple[str, ...]
    ) -> _BucketEvidence:
        """Read keys of some file groups."""
        slices = [each for each in groups.slices if parse_bucket(each.file_id) is not None]
        buckets = frozenset(parse_bucket(each) or 0 for each in groups.file_ids)
        hashed = fields or snapshot.config.record_key_fields
        single = len(snapshot.config.record_key_fields) == 1 or bool(fields)
        found = cls(0, buckets, frozenset(), single)
        for file_slice in sample_slices(slices, _MOST_SLICES):
            found = found.add_keys(file_slice, read_first_keys(lookup, file_slice), hashed)
            if len(found.numbers) == 1:
                break
        return found

    def add_keys(self, file_slice: FileSlice, keys_: pa.ChunkedArray, fields: tuple[str, ...]) -> _BucketEvidence:
        """Return the evidence, extended by the keys of one more file slice."""
        bucket = parse_bucket(file_slice.file_id) or 0
        rests = np.unique(np.abs(compute_hashes(keys_, fields) - bucket))
        factor = int(np.gcd.reduce(rests, initial=self.factor))
        plain = self.plain and not has_composite(keys_)
        return replace(self, factor=factor, rests=self.rests.union(rests.tolist()), plain=plain)

    def is_possible(self, number: int) -> bool:
        """Whether a number of buckets fits all keys, and not by mere chance."""
        if number <= max(self.occupied) or self.factor % number:
            return False
        if not self.factor or self.is_uneven:
            return True
        return len(self.rests) * math.log2(self.factor / number) < _SURE_BITS

    @property
    def is_uneven(self) -> bool:
        """Whether so few buckets are occupied that the hashes are not random, so the odds of chance exclude no number.

        That happens if one key field follows from another, which makes the last bits of all hashes the same.
        """
        occupied, number = len(self.occupied), self.factor
        if occupied >= number:
            return False
        choices = math.lgamma(number + 1) - math.lgamma(occupied + 1) - math.lgamma(number - occupied + 1)
        return len(self.rests) * math.log2(number / occupied) - choices / math.log(2) >= _SURE_BITS

    @property
    def numbers(self) -> list[int]:
        """The numbers of buckets that fit the keys, followed by a 0 if they are not certain; empty without keys."""
        if not self.factor:
            return []
        found = [number for number in _list_divisors(self.factor) if self.is_possible(number)]
        sure = self.single or all(map(self.proves, found))
        return found if sure and not self.is_uneven else [*found, 0]

    def proves(self, number: int) -> bool:
        """Whether keys that lie elsewhere would hardly fit this number of buckets."""
        return len(self.rests) * math.log2(number) >= _SURE_BITS

    @property
    def disproves_buckets(self) -> bool:
        """Whether the keys lie where no bucket index would have put them.

        Keys of several fields never prove that, as the hashed fields may be unknown.
        """
        return self.contradicts_all and self.plain

    @property
    def contradicts_all(self) -> bool:
        """Whether no number of buckets fits the keys."""
        return self.factor > 0 and not any(self.is_possible(each) for each in _list_divisors(self.factor))


def _list_divisors(number: int) -> list[int]:
    small = [each for each in range(1, math.isqrt(number) + 1) if number % each == 0]
    return sorted({*small, *(number // each for each in small)})


def _find_bucket_count(
    snapshot: Snapshot, options: Mapping[str, str], evidence: _BucketEvidence, *, named: bool, sure: bool
) -> int | None:
    """Return the number of buckets; None if neither options nor keys show it. ``sure``: whether there are buckets."""
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
    if len(found) == 1 and found[0] and (sure or named or evidence.proves(found[0])):
        return found[0]
    return DEFAULT_BUCKETS if named and evidence.is_possible(DEFAULT_BUCKETS) else None


def has_same_bucket_rules(now: Snapshot, index: IndexSettings) -> bool:
    """Whether the table's own rules for numbers of buckets, if there are any, agree with a bucket index.

    Raises:
        HoodieError: the rules cannot be read.
    """
    rules = None if index.consistent else _read_rules(now)
    return rules is None or (rules.default == index.buckets and rules.rules == index.rules)


def _read_rules(snapshot: Snapshot) -> BucketRules | None:
    """Return the numbers of buckets in force in the table; None if it has no rules."""
    pending = snapshot.timeline.pending_times
    names = [each.name for each in snapshot.files.list_or_empty(RULES_FOLDER) if each.name.endswith(RULES_SUFFIX)]
    in_force = [name for name in sorted(names) if parse_instant(name) not in pending]
    if not in_force:
        return None
    return BucketRules.from_bytes(read_bounded(snapshot.files, f"{RULES_FOLDER}/{in_force[-1]}"))


def _load_rules(snapshot: Snapshot, options: Mapping[str, str], *, kept: bool) -> BucketRules | None:
    """Return the numbers of buckets that differ between partitions, from the table or the options."""
    given, told = keys.BUCKET_COUNT.read_given(options), keys.BUCKET_EXPRESSIONS.read(options)
    said = None if told is None else BucketRules.from_expressions(told, given or DEFAULT_BUCKETS)
    if not kept:
        return said
    rules = _read_rules(snapshot)
    if rules is None:
        raise InvalidTableError("The rules for numbers of buckets are missing.", path=RULES_FOLDER)
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
