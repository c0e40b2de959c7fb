"""The index of a bootstrap: HFiles, values of both forms in them, and the places that they name."""

from __future__ import annotations

from contextlib import suppress

from hoodie_py.errors import HoodieError
from hoodie_py.formats.hfile.bootstrap_index import decode_file_value, decode_partition_value, read_hfile
from hoodie_py.table.view.bootstrap import locate_source
from tests.bootstrap import make_file_value, make_index, make_partition_value

BASE_PATH = "s3a://lake/src"
_SOURCES = {"p=0": {"a-0": (f"{BASE_PATH}/p=0/x.parquet", 12), "b-0": ("s3://lake/src/y", None)}}


def seeds() -> list[bytes]:
    """Whole indexes, and single values."""
    values = [make_partition_value(inside) for inside in _SOURCES.values()]
    return [*make_index(_SOURCES).values(), *make_index({}).values(), *values, make_file_value("/src/x", 1)]


def parse(data: bytes) -> None:
    """Read the data as an index, and as a value; places lie below the base path."""
    values = [data]
    with suppress(HoodieError):
        values += [value for _, value in read_hfile(data)]
    for value in values:
        found = []
        with suppress(HoodieError):
            found += decode_partition_value(value).values()
        with suppress(HoodieError):
            found.append(decode_file_value(value))
        for each in found:
            with suppress(HoodieError):
                source = locate_source(each, BASE_PATH)
                assert source.folder == "s3://lake/src"
                assert ".." not in source.path.split("/")
