"""The table that ``hoodie demo`` shows: merge on read, written by Java Hudi 1.2.0, packed as ``data/demo_table.zip``.

Eight records in two partitions, ordered by ``ts``: inserted, then updated, deleted and brought back by four more
commits, whose rows and deletes all lie in log files.
"""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path, PurePosixPath

from hoodie_py.errors import InvalidQueryError


@contextmanager
def demo_table(keep: Path | None = None) -> Iterator[Path]:
    """Unpack the table and give its folder; it goes away afterwards unless ``keep`` names a place for it.

    Raises:
        InvalidQueryError: there is something at that place already.
    """
    if keep is not None:
        unpack(keep)
        yield keep
        return
    with tempfile.TemporaryDirectory(prefix="hoodie-demo-") as folder:
        table = Path(folder, "table")
        unpack(table)
        yield table


def unpack(into: Path) -> None:
    """Unpack the table into a folder of its own.

    Raises:
        InvalidQueryError: the folder holds something already.
    """
    if into.exists() and (not into.is_dir() or any(into.iterdir())):
        raise InvalidQueryError(
            "There is something at that place already.", path=into, hint="Give --keep a new folder."
        )
    with as_file(files("hoodie_py.cli") / "data" / "demo_table.zip") as packed, zipfile.ZipFile(packed) as archive:
        for entry in archive.infolist():
            target = into.joinpath(*PurePosixPath(entry.filename).parts[1:])
            if entry.is_dir():
                target.mkdir(parents=True, exist_ok=True)
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.read(entry))
