"""A base file's extension chooses its reader."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.files import TableFiles
from hoodie_py.reader.base.file_formats import open_by_extension
from hoodie_py.reader.file_slice import BaseFile


@pytest.mark.parametrize("extension", ["vortex"])
def test_formats_without_a_reader_are_named(tmp_path: Path, extension: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=rf"the {extension} format.*f\.{extension}"):
        open_by_extension(TableFiles.open(str(tmp_path)), BaseFile(f"f.{extension}", 0, "1", "f"))
