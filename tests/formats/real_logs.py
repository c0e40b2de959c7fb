"""Log files of the reference tables, for tests of the byte formats."""

from __future__ import annotations

import zipfile
from functools import cache

import pytest

from hoodie_py.formats.log.framing import LogBlock, iterate_blocks
from tests.corpus import case_folder, corpus_names


@cache
def real_logs(name: str) -> dict[str, bytes]:
    """The log files of a reference table's data, by their path in it."""
    with zipfile.ZipFile(case_folder(name) / "table.zip") as archive:
        return {
            path: archive.read(path)
            for path in archive.namelist()
            if ".log." in path and not path.endswith(".crc") and "/.hoodie/" not in path
        }


def real_blocks(*names: str) -> list[LogBlock]:
    """The whole blocks of the log files of reference tables, of all tables unless some are named."""
    blocks = [
        block
        for name in names or corpus_names()
        for data in real_logs(name).values()
        for block in iterate_blocks(data)
        if isinstance(block, LogBlock)
    ]
    if not blocks:
        pytest.skip("NOT TESTED: no reference table with log files is at hand")
    return blocks
