"""Completed instants that name the files of all copies."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Any

import fastavro

Sizes = Mapping[str, tuple[int, int]]  # path of a new base file -> its bytes and rows


def copy_stats(data: bytes, copies: Callable[[str], list[str]], sizes: Sizes) -> bytes:
    """Rewrite a commit's metadata (an Avro container) with a write statistic for each copy of each file group.

    Args:
        data: content of the completed instant's file.
        copies: the new file ids for an old one, itself included.
        sizes: bytes and rows of base files that were written anew.
    """
    reader = fastavro.reader(io.BytesIO(data))
    schema: Any = reader.writer_schema
    commit: Any = next(reader)
    for partition, stats in commit["partitionToWriteStats"].items():
        commit["partitionToWriteStats"][partition] = [
            _renamed(stat, stat["fileId"], file_id, sizes) for stat in stats for file_id in copies(stat["fileId"])
        ]
    out = io.BytesIO()
    fastavro.writer(out, schema, [commit], codec=reader.codec or "null", strict_allow_default=True)
    return out.getvalue()


def _renamed(stat: Mapping[str, Any], old: str, new: str, sizes: Sizes) -> dict[str, Any]:
    fresh = {name: _rename(value, old, new) for name, value in stat.items()}
    if fresh["path"] in sizes:
        size, rows = sizes[fresh["path"]]
        fresh.update(fileSizeInBytes=size, totalWriteBytes=size, numWrites=rows, numInserts=rows)
    return fresh


def _rename(value: Any, old: str, new: str) -> Any:
    if isinstance(value, str):
        return value.replace(old, new)
    if isinstance(value, list):
        return [_rename(each, old, new) for each in value]
    return value
