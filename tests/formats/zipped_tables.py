"""Metadata files of the reference tables, read straight from their zips."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from tests.corpus import case_folder, corpus_names


@dataclass(frozen=True)
class MetaFile:
    """A file under ``.hoodie``; ``table`` is the folder that has the ``.hoodie``, relative to the zip."""

    case: str
    table: str
    path: str
    data: bytes

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]

    @property
    def folder(self) -> str:
        """Folder relative to the table, such as ``.hoodie/timeline``."""
        return self.path[len(self.table) + 1 :].rpartition("/")[0]

    @property
    def is_metadata_table(self) -> bool:
        return self.table.endswith(".hoodie/metadata")

    def __repr__(self) -> str:
        return self.path


@cache
def meta_files(case: str) -> tuple[MetaFile, ...]:
    """All files under ``.hoodie`` of a reference table and of its metadata table."""
    return tuple(_meta_files(case))


def all_meta_files() -> Iterator[MetaFile]:
    for case in corpus_names():
        yield from meta_files(case)


def _meta_files(case: str) -> Iterator[MetaFile]:
    with zipfile.ZipFile(case_folder(case) / "table.zip") as archive:
        for path in archive.namelist():
            table, found, _ = path.rpartition("/.hoodie/")
            if "/.hoodie/metadata/.hoodie/" in path:
                table = path.split("/.hoodie/metadata/.hoodie/")[0] + "/.hoodie/metadata"
            elif "/.hoodie/metadata/" in path:
                continue
            if found and not path.endswith("/"):
                yield MetaFile(case, table, path, archive.read(path))
