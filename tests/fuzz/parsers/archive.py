"""The archived timeline: log files of layout 1 and Parquet files of layout 2."""

from __future__ import annotations

from contextlib import suppress

from hoodie_py.errors import HoodieError
from hoodie_py.formats.timeline import archive
from tests.fuzz.seeds import all_files


def _is_archive(path: str) -> bool:
    return path.startswith(".hoodie/") and (".commits_.archive" in path or "/history/" in path)


def seeds() -> list[bytes]:
    """Real archives and history files of a length that can be fuzzed, behind a byte that says which of the two."""
    found: list[bytes] = []
    for _, path, data in all_files(_is_archive, 60_000):
        if ".archive" in path:
            found.append(b"\0" + data)
        elif path.endswith(".parquet"):
            found.append(b"\1" + data)
    return sorted(set(found), key=len)[:8]


def parse(data: bytes) -> None:
    """Read the archive and what its instants say."""
    with suppress(HoodieError):
        if data[:1] == b"\1":
            instants = archive.parse_history_parquet(data[1:])
        else:
            instants = archive.parse_archived_log(data[1:])
        for instant in instants:
            with suppress(HoodieError):
                instant.parse_commit_metadata()
        archive.keep_newest_entries([instants])
