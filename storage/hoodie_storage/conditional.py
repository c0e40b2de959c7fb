"""Conditional writes, which fsspec's file systems of object stores lack: one class for each kind of store.

A mark identifies a version of a file: the ETag on S3 and Azure, the generation on Google Cloud Storage. The verbs call
it ETag everywhere. Hudi's storage-based lock uses the same conditions (``S3StorageLockClient``,
``GCSStorageLockClient``, ``AzureStorageLockClient``).

A client must not repeat a write whose answer was lost: only ``Store`` knows which writes may be repeated. So each class
turns off the retries of its client.
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from types import MethodType
from typing import Any, Protocol

from hoodie_storage.errors import UnsupportedStoreError

_OLD_S3FS = "ParamValidation"  # boto3's error for a condition that it does not know


class Conditions(Protocol):
    """Requests of one kind of store; keys are its file system's."""

    create: Mapping[str, Any]
    """Arguments that make the file system's writes fail if the file exists."""

    def creates(self, verb: str) -> bool:
        """Say whether a write (``pipe_file``, ``put_file``) of the installed package respects ``create``."""
        ...

    async def read(self, key: str) -> tuple[bytes, str]:
        """Return a file and the mark of its version."""
        ...

    async def replace(self, key: str, data: bytes, mark: str) -> str:
        """Overwrite this version of a file, and return the new mark. Raises as ``Backend.replace``."""
        ...


class S3Conditions:
    """S3: If-None-Match and If-Match."""

    create: Mapping[str, Any] = {"mode": "create"}

    def __init__(self, system: Any) -> None:
        self._system = system
        # One attempt in all.
        system.retries = 1

    def creates(self, verb: str) -> bool:
        return _takes(self._system, verb, "mode")

    async def read(self, key: str) -> tuple[bytes, str]:
        bucket, name, _ = self._system.split_path(key)
        answer = await self._system._call_s3("get_object", Bucket=bucket, Key=name)  # noqa: SLF001
        body = answer["Body"]
        try:
            return bytes(await body.read()), str(answer["ETag"])
        finally:
            body.close()

    async def replace(self, key: str, data: bytes, mark: str) -> str:
        bucket, name, _ = self._system.split_path(key)
        try:
            done = await self._system._call_s3(  # noqa: SLF001
                "put_object", Bucket=bucket, Key=name, Body=data, IfMatch=mark
            )
        except Exception as error:
            if _OLD_S3FS in f"{type(error).__name__} {type(error.__cause__).__name__}":
                raise UnsupportedStoreError(
                    "the installed package for s3:// cannot replace a file only while it is unchanged",
                    hint="Install s3fs 2025.2.0 or newer.",
                ) from error
            raise
        return str(done["ETag"])


class GoogleConditions:
    """Google Cloud Storage: ifGenerationMatch."""

    create: Mapping[str, Any] = {"mode": "create"}

    def __init__(self, system: Any) -> None:
        self._system = system
        # The method without its decorator, which retries: gcsfs has no setting for that.
        once = getattr(type(system)._request, "__wrapped__", None)  # noqa: SLF001
        if once is not None:
            system._request = MethodType(once, system)  # noqa: SLF001

    def creates(self, verb: str) -> bool:
        return _takes(self._system, verb, "mode")

    async def read(self, key: str) -> tuple[bytes, str]:
        bucket, name, _ = self._system.split_path(key)
        headers, data = await self._system._call("GET", "b/{}/o/{}", bucket, name, alt="media")  # noqa: SLF001
        return bytes(data), str(headers["X-Goog-Generation"])

    async def replace(self, key: str, data: bytes, mark: str) -> str:
        bucket, name, _ = self._system.split_path(key)
        place = f"{self._system._location}/upload/storage/v1/b/{{}}/o"  # noqa: SLF001
        kind = {"Content-Type": "application/octet-stream"}
        asked = {"uploadType": "media", "name": name, "ifGenerationMatch": mark}
        done = await self._system._call(  # noqa: SLF001
            "POST", place, bucket, headers=kind, data=data, json_out=True, **asked
        )
        return str(done["generation"])


class AzureConditions:
    """Azure Blob Storage, also with a hierarchical namespace: If-None-Match and If-Match."""

    create: Mapping[str, Any] = {"overwrite": False}

    def __init__(self, system: Any) -> None:
        self._system = system
        pipeline = getattr(system.service_client, "_pipeline", None)
        # adlfs has no setting for retries.
        for policy in getattr(pipeline, "_impl_policies", ()):
            if hasattr(policy, "total_retries"):
                policy.total_retries = 0

    def creates(self, verb: str) -> bool:
        return _takes(self._system, verb, "overwrite")

    async def read(self, key: str) -> tuple[bytes, str]:
        async with self._open(key) as blob:
            answer = await blob.download_blob()
            return bytes(await answer.readall()), str(answer.properties.etag)

    async def replace(self, key: str, data: bytes, mark: str) -> str:
        from azure.core import MatchConditions

        condition = {"etag": mark, "match_condition": MatchConditions.IfNotModified}
        async with self._open(key) as blob:
            done = await blob.upload_blob(data, overwrite=True, metadata={"is_directory": "false"}, **condition)
        return str(done["etag"])

    def _open(self, key: str) -> Any:
        container, name, _ = self._system.split_path(key)
        return self._system.service_client.get_blob_client(container=container, blob=name)


async def list_azure_folder(system: Any, key: str) -> list[dict[str, Any]]:
    """Return the files and folders in a folder as fsspec's ``ls`` describes them.

    adlfs's own listing makes a further request for every sibling whose name begins with the folder's name.
    """
    container, _, folder = key.partition("/")
    prefix = f"{folder}/" if folder else ""
    found: list[dict[str, Any]] = []
    async with system.service_client.get_container_client(container=container) as client:
        async for each in client.walk_blobs(name_starts_with=prefix, include=["metadata"], delimiter="/"):
            marks = getattr(each, "metadata", None) or {}
            is_folder = each.name.endswith("/") or "true" in {marks.get("hdi_isfolder"), marks.get("is_directory")}
            if each.name != prefix:
                found.append(
                    {
                        "name": f"{container}/{each.name}",
                        "type": "directory" if is_folder else "file",
                        "size": 0 if is_folder else each.size,
                        "last_modified": getattr(each, "last_modified", None),
                    }
                )
    if not found:
        raise FileNotFoundError(key)
    return found


def choose_conditions(system: Any, protocol: str) -> Conditions | None:
    """Return the conditional writes of a file system; None for a kind of store without them."""
    if protocol == "s3":
        return S3Conditions(system)
    if protocol == "gs":
        return GoogleConditions(system)
    if protocol in {"abfs", "abfss", "az"}:
        return AzureConditions(system)
    return None


def _takes(system: Any, verb: str, argument: str) -> bool:
    """Say whether a verb of an asynchronous file system takes an argument; unknown ones would be silently ignored."""
    return argument in signature(getattr(system, f"_{verb}")).parameters
