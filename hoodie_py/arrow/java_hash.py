"""Hash strings as Java's ``String.hashCode``: s[0] * 31^(n - 1) + ... + s[n - 1] over UTF-16 units, in 32 bits."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

FACTOR = np.uint32(31)
"""Factor of Java's hash codes; uint32 wraps around as Java's int does."""


def compute_java_hashes(texts: pa.Array) -> np.ndarray:
    """Compute Java's hash code of each string as uint32; 0 for null, as in Java's list of strings."""
    lengths, starts, units = _split_utf16(texts)
    order = np.argsort(-lengths, kind="stable")
    falling, first = lengths[order], starts[order]
    hashes = np.zeros(len(lengths), np.uint32)
    longest = int(falling[0]) if len(falling) else 0
    # Sorted by falling length, the strings with an i-th unit come first, so each step works on a shorter prefix.
    counts = np.searchsorted(-falling, -np.arange(longest), side="left")
    for i, count in enumerate(counts.tolist()):
        active = hashes[:count]
        active *= FACTOR
        active += units[first[:count] + i]
    result = np.empty_like(hashes)
    result[order] = hashes
    return result


def _split_utf16(texts: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return each string's length and start in UTF-16 units, and all units; a null is an empty string.

    Java hashes UTF-16 units, Arrow stores UTF-8.
    """
    large = texts.cast(pa.large_string()).fill_null("")
    _, offset_buffer, data_buffer = large.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64, len(large) + 1, 8 * large.offset)
    base, size = int(offsets[0]), int(offsets[-1] - offsets[0])
    offsets = offsets - base
    octets = np.frombuffer(data_buffer, np.uint8, size, base) if size else np.empty(0, np.uint8)
    if not size or int(octets.max()) < 0x80:  # ASCII, where bytes are units
        return np.diff(offsets), offsets[:-1], octets
    lead = (octets & 0xC0) != 0x80  # true for the first byte of a character
    widths = lead.astype(np.int64) + (octets >= 0xF0)  # characters of four bytes take two units
    places = np.concatenate([np.zeros(1, np.int64), np.cumsum(widths)])[offsets]
    units = np.frombuffer(octets.tobytes().decode().encode("utf-16-le"), "<u2")
    return np.diff(places), places[:-1], units
