"""Refuse base files that the reader cannot read.

The rule: a base file must be a Parquet file with whole rows. ORC, HFile and Lance files are refused. So are the
skeleton files of a metadata-only bootstrap (instant ``00000000000001``): their data columns lie in files outside the
table.
"""

from __future__ import annotations

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.formats.names import METADATA_BOOTSTRAP_INSTANT
from hoodie_py.reader.file_slice import BaseFile


def check_readable(base: BaseFile) -> BaseFile:
    """Return ``base`` if its rows can be read.

    Raises:
        UnsupportedFeatureError: another format than Parquet, or a bootstrap skeleton.
    """
    if not base.path.endswith(".parquet"):
        kind = base.path.rpartition(".")[2]
        raise UnsupportedFeatureError(f"Base files in the {kind} format are not supported.", path=base.path)
    if base.instant == METADATA_BOOTSTRAP_INSTANT:
        raise UnsupportedFeatureError(
            "A metadata-only bootstrap is not supported: this base file has only meta columns.",
            path=base.path,
            hint="Rewrite the file group with Hudi (an upsert, clustering or a full-record bootstrap).",
        )
    return base
