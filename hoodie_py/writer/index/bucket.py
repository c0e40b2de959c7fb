"""Hash record keys to buckets (Hudi ``BucketIdentifier``, ``ConsistentBucketIdentifier`` and ``KeyGenUtils``).

Numbered buckets: the hash is Java's ``List.hashCode`` of the hash fields' values, each with Java's ``String.hashCode``.
The bucket is the hash's last 31 bits modulo the number of buckets. The file id begins with the bucket's number in
eight digits, in place of the first characters of a UUID.

A key without a comma or without a colon is one value. Other keys are ``field:value,field:value``. ``__null__`` stands
for null and ``__empty__`` for an empty text. A value may hold commas and colons: it ends at the last comma before the
next colon. A key that has none of the hash fields is one value again.

Consistent hashing uses xxHash32 of the joined values, with ``null`` for null. The bucket is the first range whose upper
bound is not less than the hash.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_numpy, to_booleans, to_numbers
from hoodie_py.arrow.hashes import FACTOR, compute_java_hashes, hash_xxhash32

_DIGITS = 8
_LIKELY_BUCKETS = 10_000
_CHUNK_KEYS = 1 << 14
_NULL, _EMPTY = "__null__", "__empty__"
_POSITIVE = np.uint32(0x7FFFFFFF)  # a hash without its sign


def compute_buckets(keys: pa.ChunkedArray, hash_fields: Collection[str], buckets: int) -> np.ndarray:
    """Return the bucket of each key, int64; keys are not null.

    ``hash_fields``: the fields of the key that are hashed; none for all.
    """
    return _map_chunks(keys, lambda chunk: _hash_keys(chunk, hash_fields) % np.uint32(buckets))


def compute_hashes(keys: pa.ChunkedArray, hash_fields: Collection[str]) -> np.ndarray:
    """Return the hash that ``compute_buckets`` divides, as int64 from 0 to 2^31 - 1; the arguments are the same."""
    return _map_chunks(keys, lambda chunk: _hash_keys(chunk, hash_fields))


def find_hash_ranges(keys: pa.ChunkedArray, hash_fields: Collection[str], bounds: Sequence[int]) -> np.ndarray:
    """Find the hash range that each key falls into.

    Keys and fields as for ``compute_buckets``. ``bounds``: the greatest hash of each range, rising; hashes above the
    last bound belong to the first range. The result is int64, from 0 to ``len(bounds)`` - 1.
    """
    edges = np.array(bounds, np.int64)

    def find(chunk: pa.Array) -> np.ndarray:
        hashes = (hash_xxhash32(_join_values(chunk, hash_fields)) & _POSITIVE).astype(np.int64)
        return np.asarray(np.searchsorted(edges, hashes, side="left") % len(edges))

    return _map_chunks(keys, find)


def _map_chunks(keys: pa.ChunkedArray, compute: Callable[[pa.Array], np.ndarray]) -> np.ndarray:
    """Compute a number for each key, as int64, in pieces whose arrays stay in the processor's cache."""
    parts = [
        compute(chunk.slice(start, _CHUNK_KEYS)) for chunk in keys.chunks for start in range(0, len(chunk), _CHUNK_KEYS)
    ]
    return np.concatenate(parts).astype(np.int64, copy=False) if parts else np.empty(0, np.int64)


def parse_bucket(file_id: str) -> int | None:
    """Return the bucket in a file id; None if it has none."""
    digits = file_id[:_DIGITS]
    return int(digits) if len(digits) == _DIGITS and digits.isascii() and digits.isdigit() else None


def is_likely_bucket(file_id: str) -> bool:
    """Whether a file id begins with a small number in eight digits. Hardly any random id does."""
    bucket = parse_bucket(file_id)
    return bucket is not None and bucket < _LIKELY_BUCKETS


def make_bucket_file_id(bucket: int) -> str:
    """Make a new file id for a bucket."""
    return f"{bucket:0{_DIGITS}d}{str(uuid.uuid4())[_DIGITS:]}-0"


def make_shared_file_id(bucket: int) -> str:
    """Return the file id that every non-blocking writer gives to a bucket, without coordination."""
    return f"{bucket:0{_DIGITS}d}-0000-0000-0000-000000000000-0"


def _hash_keys(keys: pa.Array, hash_fields: Collection[str]) -> np.ndarray:
    """Hash keys as Java hashes lists of strings: 31 + hash for a list of one string; uint32 without the sign."""
    composite = _find_composite(keys)
    if not composite.any():
        return (compute_java_hashes(keys) + FACTOR) & _POSITIVE
    hashes = np.empty(len(keys), np.uint32)
    plain = np.flatnonzero(~composite)
    if len(plain):
        hashes[plain] = compute_java_hashes(keys.take(from_numpy(plain))) + FACTOR
    at = np.flatnonzero(composite)
    hashes[at] = _hash_composite_keys(keys.take(from_numpy(at)), hash_fields)
    return hashes & _POSITIVE


def has_composite(keys: pa.ChunkedArray) -> bool:
    """Whether a key contains a comma and a colon, so that it may consist of several fields."""
    return any(_find_composite(chunk).any() for chunk in keys.chunks)


def _find_composite(keys: pa.Array) -> np.ndarray:
    """Return a mask of the keys that contain a comma and a colon, so that they may consist of several fields."""
    return to_booleans(pc.and_(pc.match_substring(keys, ","), pc.match_substring(keys, ":")))


def _hash_composite_keys(keys: pa.Array, hash_fields: Collection[str]) -> np.ndarray:
    """Hash keys of several fields: together if their values contain no comma and no colon, else one by one."""
    pieces = pc.split_pattern(keys, ",")
    starts = np.asarray(to_numbers(pieces.offsets)).astype(np.int64)
    flat = pieces.flatten()
    starts = starts - starts[0]
    regular = to_numbers(pc.count_substring(flat, ":")) == 1
    bad = np.concatenate([np.zeros(1, np.int64), np.cumsum(~regular)])  # running count: a key is odd if it rises
    odd = bad[starts[1:]] > bad[starts[:-1]]
    hashes = np.ones(len(keys), np.uint32)
    simple = np.flatnonzero(~odd)
    if len(simple):
        hashes[simple] = _hash_regular_keys(keys, flat, starts, simple, hash_fields)
    for i in np.flatnonzero(odd).tolist():
        values = split_key(keys[i].as_py(), hash_fields)
        codes = compute_java_hashes(pa.array(values, pa.string())).tolist()
        code = 1
        for each in codes:
            code = (code * int(FACTOR) + each) & 0xFFFFFFFF
        hashes[i] = code
    return hashes


def _hash_regular_keys(
    keys: pa.Array, pieces: pa.Array, starts: np.ndarray, at: np.ndarray, hash_fields: Collection[str]
) -> np.ndarray:
    """Hash the keys at the positions ``at``; each of their pieces is a name, a colon and a value."""
    counts = starts[at + 1] - starts[at]
    # Numbers of the pieces of the keys ``at``, key by key: a range for each key, concatenated.
    wanted = np.repeat(starts[at] - (np.cumsum(counts) - counts), counts) + np.arange(int(counts.sum()))
    halves = pc.split_pattern(pieces.take(from_numpy(wanted)), ":", max_splits=1)
    names, values = pc.list_element(halves, 0), pc.list_element(halves, 1)
    codes = compute_java_hashes(values)
    codes[to_booleans(pc.is_in(values, pa.array([_NULL, _EMPTY])))] = 0
    counted = np.ones(len(codes), bool)
    if hash_fields:
        counted = to_booleans(pc.is_in(names, pa.array(list(hash_fields), pa.string())))
    firsts = np.cumsum(counts) - counts
    hashes = np.ones(len(at), np.uint32)
    met = np.zeros(len(at), bool)
    for i in range(int(counts.max())):  # the i-th piece of every key at once, as each hash continues the one before
        has = np.flatnonzero(counts > i)
        place = firsts[has] + i
        has, place = has[counted[place]], place[counted[place]]
        hashes[has] = hashes[has] * FACTOR + codes[place]
        met[has] = True
    if not met.all():
        none = np.flatnonzero(~met)
        hashes[none] = compute_java_hashes(keys.take(from_numpy(at[none]))) + FACTOR
    return hashes


def _join_values(keys: pa.Array, hash_fields: Collection[str]) -> pa.Array:
    """Join the values of each key's hash fields; keys of one value stay unchanged."""
    composite = _find_composite(keys)
    if not composite.any():
        return keys
    at = np.flatnonzero(composite)
    chosen = keys.take(from_numpy(at))
    regular = to_booleans(pc.match_substring_regex(chosen, r"^[^:,]*:[^:,]*(,[^:,]*:[^:,]*)*$"))
    pieces = pc.split_pattern(chosen.filter(from_numpy(regular)), ",")
    halves = pc.split_pattern(pieces.flatten(), ":", max_splits=1)
    names, values = pc.list_element(halves, 0), pc.list_element(halves, 1)
    values = pc.if_else(pc.equal(values, _NULL), "null", pc.if_else(pc.equal(values, _EMPTY), "", values))
    counts = np.ones(len(names), bool)
    if hash_fields:
        counts = to_booleans(pc.is_in(names, pa.array(list(hash_fields), pa.string())))
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])[
        to_numbers(pieces.offsets) - pieces.offsets[0].as_py()
    ]
    lists = pa.ListArray.from_arrays(from_numpy(starts.astype(np.int32)), values.filter(from_numpy(counts)))
    joined = pc.if_else(from_numpy(np.diff(starts) > 0), pc.binary_join(lists, ""), chosen.filter(from_numpy(regular)))
    # ``texts``: the position of each key's text, first the joined texts, then the texts of odd keys; -1 for plain keys.
    texts = np.full(len(keys), -1, np.int64)
    texts[at[regular]] = np.arange(len(joined))
    odd = at[~regular]
    texts[odd] = len(joined) + np.arange(len(odd))
    split = [split_key(key, hash_fields) for key in keys.take(from_numpy(odd)).to_pylist()]
    own = pa.array(["".join("null" if each is None else each for each in values_) for values_ in split], pa.string())
    found = pa.concat_arrays([joined.cast(pa.string()), own]).take(from_numpy(texts, texts < 0))
    return pc.if_else(from_numpy(composite), found, keys)


def split_key(key: str, hash_fields: Collection[str]) -> list[str | None]:
    """Return the values of a key's hash fields in key order; the key itself if it contains none of them.

    The key contains commas and colons. No hash fields means all.
    """
    values: list[str | None] = []
    at = 0
    while at < len(key):
        colon = key.find(":", at)
        if colon < 0:
            break
        end = _find_value_end(key, colon)
        if not hash_fields or key[at:colon] in hash_fields:
            text = key[colon + 1 : end]
            values.append(None if text == _NULL else "" if text == _EMPTY else text)
        at = end + 1
    return values or [key]


def _find_value_end(key: str, colon: int) -> int:
    """Find the end of the value behind a colon: the last comma before the next colon that follows a comma."""
    following = key.find(":", colon + 1)
    while following >= 0:
        comma = key.rfind(",", colon + 1, following + 1)
        if comma >= 0:
            return comma
        following = key.find(":", following + 1)
    return len(key)
