"""Requests to S3 of which s3fs makes more than one: a listing, a look at a file, the removal of many files.

s3fs lists the parent of a folder that it finds empty, and a folder of the name of a file that it does not find. It then
knows whether the name is a file or a folder, which these requests' callers know already.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_MOST_KEYS = 1000  # of one request, by S3's rule


async def list_s3_folder(system: Any, key: str) -> list[dict[str, Any]]:
    """Return the files and folders in a folder as fsspec's ``ls`` describes them; one request for 1,000 names.

    Raises FileNotFoundError if there is nothing in it.
    """
    found: list[dict[str, Any]] = await system._lsdir(key, refresh=True)  # noqa: SLF001
    if not found:
        raise FileNotFoundError(key)
    return found


async def list_s3_tree(system: Any, key: str) -> list[dict[str, Any]]:
    """Return all files below a folder, at any depth; one request for 1,000 names."""
    found: list[dict[str, Any]] = await system._lsdir(key, refresh=True, delimiter="")  # noqa: SLF001
    return found


async def has_s3_file(system: Any, key: str) -> bool:
    """Say whether a file exists, by one request."""
    bucket, name, _ = system.split_path(key)
    try:
        await system._call_s3("head_object", system.kwargs, Bucket=bucket, Key=name)  # noqa: SLF001
    except FileNotFoundError:
        return False
    return True


async def delete_s3_files(system: Any, keys: Sequence[str]) -> None:
    """Remove files of one bucket; missing ones are no error. One request for 1,000 files.

    Raises OSError if the store kept one of them.
    """
    bucket = system.split_path(keys[0])[0]
    for start in range(0, len(keys), _MOST_KEYS):
        some = [{"Key": system.split_path(key)[1]} for key in keys[start : start + _MOST_KEYS]]
        answer = await system._call_s3(  # noqa: SLF001
            "delete_objects", system.kwargs, Bucket=bucket, Delete={"Objects": some, "Quiet": True}
        )
        for failure in answer.get("Errors", ()):
            raise OSError(f"{failure.get('Code')}: {failure.get('Message')}")
