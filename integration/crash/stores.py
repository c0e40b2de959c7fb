"""Where a table lies while it is crashed: a folder, or a bucket of an S3 server in a process of its own.

Both can be set to a state, and looked at, without a request of the package under test.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

from hoodie_py import HoodieTable, TableFiles
from hoodie_py.table.snapshot import open_snapshot
from hoodie_py.testing import local_s3

HEARTBEATS = ".hoodie/.heartbeat/"
LOCK_FILE = ".hoodie/lock"
LOCK_OBJECT = ".hoodie/.locks/table_lock.json"
_BUCKET = "lake"
_PREFIX = "t/"


@dataclass(frozen=True)
class State:
    """All files of a table, by path, and the folders that are there (no store but a disk has any)."""

    files: Mapping[str, bytes]
    folders: frozenset[str] = field(default_factory=frozenset)

    def without(self, path: str) -> State:
        return State({name: data for name, data in self.files.items() if name != path}, self.folders)

    @classmethod
    def of_folder(cls, base: Path) -> State:
        paths = [path for path in base.rglob("*") if not path.name.endswith(".crc")]
        return cls(
            {path.relative_to(base).as_posix(): path.read_bytes() for path in paths if path.is_file()},
            frozenset(path.relative_to(base).as_posix() for path in paths if path.is_dir()),
        )


class Place(Protocol):
    """A table's place on a store."""

    store: str
    uri: str
    options: Mapping[str, Any]

    def load(self, state: State) -> None:
        """Make the table be what a state says."""
        ...

    def dump(self) -> State:
        """Return all that is there."""
        ...

    def sizes(self) -> dict[str, int]:
        """Return the size of each file."""
        ...

    def let_time_pass(self, seconds: float) -> None:
        """Make signs of life and locks as old as if so many seconds had gone by.

        Signs are heartbeats and, for a rollback, which has none of its own, the file by which it is pending.
        """
        ...


def files_at(place: Place) -> TableFiles:
    return TableFiles.open(place.uri, place.options)


def open_table(files: TableFiles) -> HoodieTable:
    """Open a table by its files, which may fail as planned; users open one by its URI."""
    return HoodieTable(open_snapshot(files))


class Folder:
    """A folder of a local disk."""

    store = "local"

    def __init__(self, base: Path) -> None:
        self.base = base
        self.uri = str(base)
        self.options: Mapping[str, Any] = {}
        self._loaded: dict[str, tuple[bytes, tuple[int, int, int]]] = {}

    def load(self, state: State) -> None:
        there = {path.relative_to(self.base).as_posix(): path for path in self.base.rglob("*")}
        for name, path in sorted(there.items(), reverse=True):
            if path.is_dir():
                if name not in state.folders:
                    shutil.rmtree(path)
            elif name not in state.files:
                path.unlink(missing_ok=True)
        for name in sorted(state.folders):
            (self.base / name).mkdir(parents=True, exist_ok=True)
        loaded = {}
        for name, data in state.files.items():
            path = self.base / name
            known = self._loaded.get(name)
            if known is None or known[0] is not data or not path.exists() or _mark(path) != known[1]:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            loaded[name] = (data, _mark(path))
        self._loaded = loaded

    def dump(self) -> State:
        return State.of_folder(self.base)

    def sizes(self) -> dict[str, int]:
        files = [path for path in self.base.rglob("*") if path.is_file()]
        return {path.relative_to(self.base).as_posix(): path.stat().st_size for path in files}

    def let_time_pass(self, seconds: float) -> None:
        then = time.time() - seconds
        for path in [path for path in self.base.rglob("*") if path.is_file()]:
            if _is_sign(path.relative_to(self.base).as_posix()):
                os.utime(path, (then, then))


def _is_sign(name: str) -> bool:
    rollback = name.startswith(".hoodie/") and name.endswith((".rollback.requested", ".rollback.inflight"))
    return rollback or name.startswith(HEARTBEATS) or name == LOCK_FILE


def _mark(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


class Bucket:
    """A bucket of an S3 server, which lives in a process of its own for as long as this object is open."""

    store = "s3"

    def __init__(self) -> None:
        context = multiprocessing.get_context("fork")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other, self._pipe), daemon=True)
        self._process.start()
        other.close()
        self.uri, self.options = self._pipe.recv()

    def load(self, state: State) -> None:
        self._ask("load", dict(state.files))

    def dump(self) -> State:
        return State(self._ask("dump"))

    def sizes(self) -> dict[str, int]:
        found: dict[str, int] = self._ask("sizes")
        return found

    def let_time_pass(self, seconds: float) -> None:
        self._ask("let_time_pass", seconds)

    def close(self) -> None:
        self._pipe.close()
        self._process.join()

    def _ask(self, *what: Any) -> Any:
        self._pipe.send(what)
        return self._pipe.recv()


def _serve(pipe: Connection, others_end: Connection) -> None:
    others_end.close()  # or the end of whoever has it would not be noticed here
    with local_s3(_BUCKET) as s3:
        pipe.send((f"{s3.uri}/{_PREFIX.rstrip('/')}", dict(s3.storage_options)))
        objects = _Objects()
        while True:
            try:
                verb, *args = pipe.recv()
            except EOFError:
                return
            pipe.send(getattr(objects, verb)(*args))


class _Objects:
    """The server's memory."""

    def __init__(self) -> None:
        from moto.s3.models import s3_backends

        backends = s3_backends["123456789012"]
        self._backend = next(each for each in backends.values() if _BUCKET in each.buckets)

    @property
    def _keys(self) -> dict[str, Any]:
        keys = self._backend.buckets[_BUCKET].keys
        return {name.removeprefix(_PREFIX): keys[name] for name in list(keys)}

    def load(self, files: dict[str, bytes]) -> None:
        keys = self._keys
        for name in keys.keys() - files.keys():
            self._backend.delete_object(_BUCKET, _PREFIX + name)
        for name, data in files.items():
            mark = hashlib.md5(data, usedforsecurity=False).hexdigest()
            if name not in keys or keys[name].etag.strip('"') != mark:
                self._backend.put_object(_BUCKET, _PREFIX + name, data)

    def dump(self) -> dict[str, bytes]:
        return {name: key.value for name, key in self._keys.items()}

    def sizes(self) -> dict[str, int]:
        return {name: key.contentsize for name, key in self._keys.items()}

    def let_time_pass(self, seconds: float) -> None:
        from datetime import timedelta

        for name, key in self._keys.items():
            if name != LOCK_OBJECT and _is_sign(name):
                key.last_modified -= timedelta(seconds=seconds)
            if name == LOCK_OBJECT:
                said = json.loads(key.value)
                said["validUntil"] -= round(seconds * 1000)
                self._backend.put_object(_BUCKET, _PREFIX + name, json.dumps(said).encode())
