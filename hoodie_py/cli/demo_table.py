"""The table that ``hoodie demo`` shows: merge on read, written by Java Hudi 1.2.0, packed as ``data/demo_table.zip``.

Eight records in two partitions, ordered by ``ts``: inserted, then updated, deleted and brought back by four more
commits, whose rows and deletes all lie in log files.
"""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import as_file, files
from typing import Any

from hoodie_py.errors import InvalidQueryError, StorageError
from hoodie_py.files import TableFiles


@contextmanager
def demo_table(keep: str | None, options: Mapping[str, Any]) -> Iterator[str]:
    """Unpack the table and give its URI; it goes away afterwards unless ``keep`` names a place for it.

    Raises:
        InvalidQueryError: there is something at that place already.
        StorageError: the place cannot be written to.
    """
    if keep is not None:
        target = TableFiles.open(keep, options)
        unpack(target)
        yield target.uri
        return
    with tempfile.TemporaryDirectory(prefix="hoodie-demo-") as folder:
        unpack(TableFiles.open(folder))
        yield folder


def unpack(target: TableFiles) -> None:
    """Write the table's files below an empty or new folder.

    Raises:
        InvalidQueryError: the folder holds something already.
        StorageError: it cannot be written to.
    """
    if _has_content(target):
        hint = "Give --keep a new folder."
        raise InvalidQueryError("There is something at that place already.", path=target.uri, hint=hint)
    with as_file(files("hoodie_py.cli") / "data" / "demo_table.zip") as packed, zipfile.ZipFile(packed) as archive:
        for entry in archive.infolist():
            if not entry.is_dir():
                target.put(entry.filename.partition("/")[2], archive.read(entry))


def _has_content(target: TableFiles) -> bool:
    try:
        return bool(target.list(""))
    except StorageError as error:
        if error.missing:
            return False
        raise
