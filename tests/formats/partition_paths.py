"""Builds partition paths as Hudi does, for tests that read them."""

from __future__ import annotations

from hoodie_py.formats.names import DEFAULT_PARTITION, escape_partition_value


def make_partition_path(
    fields: tuple[str, ...], values: tuple[str | None, ...], *, hive_style: bool = False, url_encode: bool = False
) -> str:
    """Build the path of a partition, relative to the table's base path (Hudi PartitionPathFormatterBase).

    A null or empty value is written as ``__HIVE_DEFAULT_PARTITION__``; no fields give "".
    """
    segments = []
    for field, value in zip(fields, values, strict=True):
        text = DEFAULT_PARTITION if not value else escape_partition_value(value) if url_encode else value
        segments.append(f"{field}={text}" if hive_style else text)
    return "/".join(segments)
