"""Request times that only a metadata table has (Hudi ``HoodieBackedTableMetadataWriter``,
``HoodieBackedTableMetadataWriterTableVersionSix``, up to Hudi 0.15 ``HoodieTableMetadataUtil``).

A write of the table has the same time in both. A commit that creates a partition of the metadata table has another one:

* from table version 8 on the first free one of 00000000000000000, 00000000000000001, ...: before all of the table's;
* earlier, the last completed instant of the table followed by 010, 011, ...; 00000000000000010, ... if there is none.

Up to version 6 services have such times, too: the last instant followed by 001 to 006. An upgrade keeps them all.
"""

from __future__ import annotations

from collections.abc import Iterator

BEFORE_ALL = "0" * 14
"""Beginning of times of partitions that were created independently of the table's instants, or before the first one."""

_DIGITS = 17  # of an instant of the table, to the millisecond; longer times have a suffix
_SUFFIX_DIGITS = 3
_FIRST_SUFFIX = 10


def iterate_creation_times(newest: str | None, layout: int) -> Iterator[str]:
    """Yield the times that a commit that creates a partition may have, in the order in which they are tried.

    ``newest`` is the table's last completed instant, ``layout`` the metadata table's timeline layout.
    """
    begin, number = (BEFORE_ALL, 0) if layout > 1 else (newest or BEFORE_ALL, _FIRST_SUFFIX)
    while True:
        yield f"{begin}{number:03d}"
        number += 1


def creates_partition(time: str) -> bool:
    """Say whether a commit with this time creates a partition of the metadata table."""
    if time.startswith(BEFORE_ALL):
        return True
    suffix = time[_DIGITS:]
    return len(suffix) == _SUFFIX_DIGITS and suffix.isdecimal() and int(suffix) >= _FIRST_SUFFIX


def is_own(time: str) -> bool:
    """Say whether only the metadata table has an instant with this time: it belongs to no write of the table."""
    return time.startswith(BEFORE_ALL) or len(time) == _DIGITS + _SUFFIX_DIGITS


def find_covered_time(time: str) -> str:
    """Return the table's last instant when the commit with this time created a partition from the listed files.

    The result begins with ``BEFORE_ALL`` if the time does not contain it.
    """
    return time[:_DIGITS]
