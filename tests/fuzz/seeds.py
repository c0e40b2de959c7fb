"""Real files of the packaged reference tables, as seeds and as files to damage."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from functools import cache

from tests.corpus import PACKAGED

METADATA_TABLE = "/.hoodie/metadata/"


@cache
def files(case: str) -> dict[str, bytes]:
    """The files of a packaged reference table by their path in it, without those of its metadata table."""
    with zipfile.ZipFile(PACKAGED / case / "table.zip") as archive:
        return {
            name.partition("/")[2]: archive.read(name)
            for name in archive.namelist()
            if not name.endswith(("/", ".crc")) and METADATA_TABLE not in name
        }


def cases() -> list[str]:
    """Names of the packaged reference tables."""
    return sorted(case.parent.name for case in PACKAGED.glob("*/case.json"))


def all_files(keep: Callable[[str], bool], most_bytes: int = 1 << 30) -> Iterator[tuple[str, str, bytes]]:
    """Case, path and bytes of every file whose path is to be kept and that is not too long."""
    for case in cases():
        for path, data in files(case).items():
            if len(data) <= most_bytes and keep(path):
                yield case, path, data


def is_log(path: str) -> bool:
    """Whether a file is a log file of table data."""
    return ".log." in path and not path.startswith(".hoodie/")


def is_instant(path: str) -> bool:
    """Whether a file is one of the active timeline."""
    folder = path.rpartition("/")[0]
    return folder in (".hoodie", ".hoodie/timeline") and path.rpartition("/")[2][:1].isdigit()


def distinct(seeds: Iterator[bytes], most: int) -> list[bytes]:
    """The shortest of the seeds, each once."""
    return sorted(set(seeds), key=lambda seed: (len(seed), seed))[:most]
