"""What the footer of a base file says: the names of its entries, and the least and greatest record key in Java's order.

BLOOM indexes look a key up only in files whose range contains it. Java compares UTF-16 units, so characters beyond
U+FFFF (surrogate pairs) come *before* U+E000 to U+FFFF. For all other characters the order is that of their UTF-8
bytes. It is for these too, once the first bytes of U+E000 to U+FFFF (0xEE and 0xEF) are replaced by bytes greater than
the first bytes of characters beyond U+FFFF (0xF0 to 0xF4).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.errors import CorruptFileError

_MOVED = np.arange(256, dtype=np.uint8)  # the new byte of each byte; 0xFE and 0xFF never occur in UTF-8
_MOVED[[0xEE, 0xEF]] = 0xFE, 0xFF
_FORTH = bytes.maketrans(b"\xee\xef", b"\xfe\xff")
_BACK = bytes.maketrans(b"\xfe\xff", b"\xee\xef")


class KeyRange:
    """The range of the added keys; both ends are None before the first key."""

    def __init__(self) -> None:
        self._range: tuple[bytes, bytes] | None = None

    def add(self, keys: pa.Array) -> None:
        """Add an array of strings. Raises CorruptFileError if a string is null."""
        if keys.null_count:
            raise CorruptFileError("A record key is null.")
        if not len(keys):
            return
        found = pc.min_max(make_comparable(keys))
        low, high = found["min"].as_py(), found["max"].as_py()
        if self._range is not None:
            low, high = min(low, self._range[0]), max(high, self._range[1])
        self._range = low, high

    @property
    def least(self) -> str | None:
        """The first key in Java's order."""
        return None if self._range is None else self._range[0].translate(_BACK).decode()

    @property
    def greatest(self) -> str | None:
        """The last key in Java's order."""
        return None if self._range is None else self._range[1].translate(_BACK).decode()


def make_one_comparable(key: bytes) -> bytes:
    """Return the comparable bytes of one key in UTF-8, like ``make_comparable``."""
    return key.translate(_FORTH)


def make_comparable(keys: pa.Array) -> pa.Array:
    """Return bytes (large_binary) whose order is Java's order of the strings."""
    keys = keys.cast(pa.large_string())
    validity, offsets, data = keys.buffers()
    if data is None:
        return keys.cast(pa.large_binary())
    octets = np.frombuffer(data, np.uint8)
    moved = _MOVED[octets] if len(octets) and int(octets.max()) >= 0xEE else data
    buffers = [validity, offsets, pa.py_buffer(moved)]
    return pa.Array.from_buffers(pa.large_binary(), len(keys), buffers, keys.null_count, keys.offset)


BLOOM_KEY = "org.apache.hudi.bloomfilter"
BLOOM_TYPE_KEY = "hoodie_bloom_filter_type_code"
MIN_KEY = "hoodie_min_record_key"
MAX_KEY = "hoodie_max_record_key"
AVRO_SCHEMA_KEY = "parquet.avro.schema"
SPARK_VERSION_KEY = "org.apache.spark.version"
