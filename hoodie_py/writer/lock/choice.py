"""Choose the lock that a table's writers share, by Hudi's option keys (``hoodie.write.lock.*``).

If no lock provider is set, or Java's in-process one, no writers on other machines are expected. Then the lock is one of
this machine that excludes its threads and processes.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.files import TableFiles
from hoodie_py.options import write as write_keys
from hoodie_py.writer.lock.file_system import LOCK_FILE, FileSystemLock
from hoodie_py.writer.lock.lock import Lock, NoLock
from hoodie_py.writer.lock.machine import MachineLock
from hoodie_py.writer.lock.storage import StorageLock

_OWN_LOCK = "Pass a lock of your own as lock=: an object with acquire(timeout), renew() and release()."


def choose_lock(options: Mapping[str, str], files: TableFiles, lock: Lock | None = None) -> Lock:
    """Return the lock that the options name. The caller's own ``lock`` takes precedence over the options.

    Raises:
        UnsupportedFeatureError: the lock provider is not handled, or is not safe on the table's store.
        InvalidQueryError: several writers are declared without a lock provider, or an option has a bad value.
    """
    if lock is not None:
        return lock
    provider = write_keys.LOCK_PROVIDER.read(options)
    mode = write_keys.CONCURRENCY_MODE.read(options)
    if provider is None and mode != write_keys.SINGLE_WRITER:
        raise InvalidQueryError(
            f"{write_keys.CONCURRENCY_MODE}={mode} needs {write_keys.LOCK_PROVIDER}: the one of the other writers."
        )
    if provider is None or provider == write_keys.IN_PROCESS_PROVIDER:
        return MachineLock(files)
    if provider == write_keys.NOOP_PROVIDER:
        return NoLock()
    if provider == write_keys.FILE_SYSTEM_PROVIDER:
        return _make_file_system_lock(options, files)
    if provider == write_keys.STORAGE_PROVIDER:
        return _make_storage_lock(options, files)
    raise UnsupportedFeatureError(f"The lock provider {provider}.", hint=_OWN_LOCK)


def read_wait_seconds(options: Mapping[str, str]) -> float:
    """Return how many seconds to wait for a lock, all attempts and the pauses between them (Hudi ``LockManager``).

    Raises:
        InvalidQueryError: a value is not valid.
    """
    once, retries = write_keys.LOCK_WAIT_MS.read(options), write_keys.LOCK_RETRIES.read(options)
    pause = write_keys.LOCK_CLIENT_PAUSE_MS.read(options)
    return (once + retries * (once + pause)) / 1000


def _read_pause(options: Mapping[str, str]) -> float:
    return write_keys.LOCK_RETRY_WAIT_MS.read(options) / 1000


def _make_file_system_lock(options: Mapping[str, str], files: TableFiles) -> Lock:
    if files.local_path("") is None and not files.uri.startswith("memory:"):
        raise UnsupportedFeatureError(
            f"The lock provider {write_keys.FILE_SYSTEM_PROVIDER} on {urlsplit(files.uri).scheme}://, where Java "
            "cannot create its file atomically.",
            hint=f"All writers should use {write_keys.STORAGE_PROVIDER} there.",
        )
    place, path = _find_lock_file(write_keys.LOCK_FILE_SYSTEM_PATH.read(options), files)
    expire = write_keys.LOCK_FILE_SYSTEM_EXPIRE.read(options)
    return FileSystemLock(place, path, expire_minutes=expire, pause=_read_pause(options))


def _find_lock_file(folder: str | None, files: TableFiles) -> tuple[TableFiles, str]:
    """Return the lock file in a folder of the local disk; None: in the table's own ``.hoodie``."""
    if folder is None:
        return files, LOCK_FILE
    split = urlsplit(folder)
    if split.scheme not in {"", "file"} or not split.path.startswith("/"):
        raise InvalidQueryError(f"{write_keys.LOCK_FILE_SYSTEM_PATH}={folder} is no absolute local path.")
    return TableFiles.open(unquote(split.path) if split.scheme else folder), "lock"


def _make_storage_lock(options: Mapping[str, str], files: TableFiles) -> Lock:
    if files.local_path("") is not None:
        raise UnsupportedFeatureError(
            f"The lock provider {write_keys.STORAGE_PROVIDER} on local disks, which have no conditional writes.",
            hint=f"All writers should use {write_keys.FILE_SYSTEM_PROVIDER} there.",
        )
    validity = write_keys.LOCK_STORAGE_VALIDITY.read(options)
    renew_every = write_keys.LOCK_STORAGE_RENEW.read(options)
    return StorageLock(files, validity=validity, renew_every=renew_every, pause=_read_pause(options))
