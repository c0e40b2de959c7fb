"""Each kind of store, held to the same rules; then what is particular to one."""

from __future__ import annotations

import errno
import fcntl
import os
import sys
import threading
import zipfile
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from uuid import uuid4

import fsspec
import pytest

from hoodie_py.testing import ConditionalStorageTests, LocalS3, StorageTests, local_s3
from hoodie_storage import (
    AccessDeniedError,
    NotFoundError,
    PathError,
    StorageFault,
    Store,
    UnsupportedStoreError,
    local,
    open_store,
)


class OwnStorageTests(StorageTests):
    """What only this package's own stores do."""

    def test_looks_like_its_uri(self, store: Store) -> None:
        assert repr(store) == f"Store({store.uri!r})"
        assert issubclass(NotFoundError, StorageFault)


class TestLocal(OwnStorageTests):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return open_store(tmp_path / "table")

    def test_local_path(self, store: Store) -> None:
        store.put("a/b", b"x")
        assert store.local_path("a/b") == os.path.realpath(f"{store.uri}/a/b")

    def test_no_temporary_files_stay(self, store: Store) -> None:
        store.put("a", b"x")
        store.put_if_absent("b", b"x")
        for write in (store.put, store.put_if_absent):
            with pytest.raises(StorageFault):
                write("a/c", b"x")
        assert sorted(each.name for each in Path(store.uri).iterdir()) == ["a", "b"]

    def test_links_must_not_lead_out(self, store: Store, tmp_path: Path) -> None:
        (tmp_path / "secret").mkdir()
        (tmp_path / "secret" / "file").write_bytes(b"secret")
        store.put("inside", b"fine")
        root = Path(store.uri)
        (root / "file").symlink_to(tmp_path / "secret" / "file")
        (root / "folder").symlink_to(tmp_path / "secret")
        (root / "same").symlink_to(root / "inside")
        assert store.read("same") == b"fine"
        for ask in (store.read, store.stat, store.local_path, lambda path: store.read_range(path, 0, 1)):
            for path in ("file", "folder/file"):
                with pytest.raises(PathError, match="link"):
                    ask(path)
        with pytest.raises(PathError):
            store.list("folder")
        for write in (store.put, store.put_if_absent):
            with pytest.raises(PathError):
                write("folder/new", b"x")
        with pytest.raises(PathError):
            store.delete("folder/file")
        store.delete("file")  # removes the link itself
        assert (tmp_path / "secret" / "file").read_bytes() == b"secret"

    def test_a_sub_store_keeps_the_fence(self, store: Store, tmp_path: Path) -> None:
        store.put("inside/file", b"fine")
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "file").write_bytes(b"secret")
        (Path(store.uri) / "a").symlink_to(tmp_path / "out")
        (Path(store.uri) / "b").symlink_to(Path(store.uri) / "inside")
        with pytest.raises(PathError):
            store.open_folder("a").read("file")
        assert store.open_folder("b").read("file") == b"fine"

    def test_the_root_may_be_a_link(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "real")
        store = open_store(tmp_path / "link")
        store.put("a", b"x")
        assert store.read("a") == b"x"
        assert (tmp_path / "real" / "a").exists()

    def test_dangling_links_are_not_listed(self, store: Store) -> None:
        store.put("a", b"x")
        (Path(store.uri) / "b").symlink_to(Path(store.uri) / "gone")
        assert [info.name for info in store.list("")] == ["a"]

    def test_readers_never_see_half_a_file(self, store: Store) -> None:
        contents = [bytes([number]) * 200_000 for number in range(2)]
        store.put("f", contents[0])
        stop = threading.Event()

        def write() -> None:
            while not stop.is_set():
                for content in contents:
                    store.put("f", content)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            seen = {store.read("f") for _ in range(100)}
        finally:
            stop.set()
            writer.join()
        assert seen <= set(contents)

    def test_versions_are_refused(self, store: Store) -> None:
        store.put("a", b"x")
        for ask in (store.read_with_etag, lambda path: store.put_if_match(path, b"y", "1")):
            with pytest.raises(UnsupportedStoreError, match="file:// cannot replace"):
                ask("a")
        assert store.read("a") == b"x"

    def test_creation_without_hard_links(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        def no_links(*_: object) -> None:
            raise PermissionError(1, "Operation not permitted")

        monkeypatch.setattr(os, "link", no_links)
        self.test_put_if_absent_writes_once(store)
        assert [info.path for info in store.list("") if info.path.endswith(".tmp")] == []

    def test_creation_where_a_rename_may_replace(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        def no_links(*_: object) -> None:
            raise PermissionError(1, "Operation not permitted")

        monkeypatch.setattr(os, "link", no_links)
        monkeypatch.setattr(local, "_rename_without_replacing", lambda *_: errno.EINVAL)
        with pytest.raises(UnsupportedStoreError, match="neither hard links nor a rename"):
            store.put_if_absent("a", b"x")
        assert store.list("") == []
        store.put("a", b"x")
        assert store.read("a") == b"x"

    def test_only_what_is_nobodys_is_removed(self, store: Store) -> None:
        root = Path(store.uri)
        (root / "a/b").mkdir(parents=True)
        name = f".{'0123456789abcdef' * 2}.tmp"
        old, young, held, other, link = (
            root / name, root / "a" / name, root / "a/b" / name, root / f"x{name}", root / f".{'f' * 32}.tmp",
        )  # fmt: skip
        for path in (old, young, held, other):
            path.write_bytes(b"half")
        link.symlink_to(other)
        for path in (old, held, other):
            os.utime(path, (0, 0))
        os.utime(link, (0, 0), follow_symlinks=False)
        with held.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            assert store.remove_scratch("") == 1
            assert [path.exists() for path in (old, young, held, other, link)] == [False, True, True, True, True]
        assert store.remove_scratch("a") == 1  # its writer has ended
        assert [young.exists(), held.exists()] == [True, False]
        assert store.remove_scratch("none") == 0

    def test_a_file_in_the_making_is_somebodys(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        real, removed = os.fsync, []

        def sync(descriptor: int) -> None:
            os.utime(descriptor, (0, 0))
            removed.append(store.remove_scratch(""))
            real(descriptor)

        monkeypatch.setattr(os, "fsync", sync)
        store.put("a", b"x")
        store.put_if_absent("b", b"x")
        store.create_from("c", str(Path(store.uri) / "a"))
        assert removed == [0, 0, 0]
        assert [info.path for info in store.list("")] == ["a", "b", "c"]

    def test_permission_denied(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        def denied(path: str, **_: object) -> FileIO:
            raise PermissionError(13, "Permission denied", path)

        store.put("a", b"x")
        monkeypatch.setattr(local, "FileIO", denied)
        with pytest.raises(AccessDeniedError, match="mode") as caught:
            store.read("a")
        assert isinstance(caught.value, PermissionError)

    def test_a_view_is_of_the_given_memory(self, store: Store) -> None:
        store.put("f", b"twelve")
        given: list[bytearray] = []

        def memory(size: int) -> memoryview:
            given.append(bytearray(size))
            return memoryview(given[0])

        view = store.read_view("f", memory)
        assert (view.obj, bytes(view)) == (given[0], b"twelve")

    def test_a_file_that_is_cut_while_it_is_read_gives_what_is_left(self, store: Store) -> None:
        store.put("f", b"twelve")

        def memory(size: int) -> memoryview:
            Path(store.local_path("f") or "").write_bytes(b"one")
            return memoryview(bytearray(size))

        assert store.read_view("f", memory) == b"one"


class TestMemory(OwnStorageTests, ConditionalStorageTests):
    @pytest.fixture
    def store(self) -> Iterator[Store]:
        name = uuid4().hex
        yield open_store(f"memory://{name}")
        system = fsspec.filesystem("memory")
        if system.exists(f"/{name}"):
            system.rm(f"/{name}", recursive=True)

    def test_is_what_fsspec_users_see(self, store: Store) -> None:
        name = store.uri.removeprefix("memory://")
        fsspec.filesystem("memory").pipe_file(f"/{name}/a/b", b"x")
        assert store.read("a/b") == b"x"
        assert store.local_path("a/b") is None

    def test_folders_without_files(self, store: Store) -> None:
        fsspec.filesystem("memory").makedirs(f"/{store.uri.removeprefix('memory://')}/empty")
        assert [(info.name, info.is_dir) for info in store.list("")] == [("empty", True)]
        assert store.list("empty") == []


@pytest.fixture(scope="module")
def server() -> Iterator[LocalS3]:
    with local_s3("stores") as running:
        yield running


@pytest.mark.s3
class TestS3(OwnStorageTests, ConditionalStorageTests):
    @pytest.fixture
    def store(self, server: LocalS3) -> Store:
        return open_store(f"{server.uri}/{uuid4().hex}", server.storage_options)

    def test_local_path(self, store: Store) -> None:
        assert store.local_path("a/b") is None

    def test_folder_markers_are_no_entries(self, store: Store, server: LocalS3) -> None:
        system = fsspec.filesystem("s3", key="k", secret="s", endpoint_url=server.endpoint_url)
        root = store.uri.removeprefix("s3://")
        for key in ("t/", "t/empty/"):
            system.call_s3("put_object", Bucket=server.bucket, Key=f"{root.partition('/')[2]}/{key}", Body=b"")
        store.put("t/file", b"x")
        assert [(info.name, info.is_dir) for info in store.list("t")] == [("empty", True), ("file", False)]
        assert store.list("t/empty") == []

    def test_versions_in_paths_are_refused(self, store: Store) -> None:
        with pytest.raises(PathError, match="version"):
            store.read("a?versionId=1")

    def test_the_bucket_is_a_root_too(self, server: LocalS3) -> None:
        store = open_store(server.uri, server.storage_options)
        store.put("at/the/top", b"x")
        assert "at" in [info.name for info in store.list("")]
        assert store.read("at/the/top") == b"x"

    def test_a_missing_bucket(self, server: LocalS3) -> None:
        store = open_store("s3://no-such-bucket/t", server.storage_options)
        for ask in (store.list, store.stat, store.read):
            with pytest.raises(NotFoundError):
                ask("x")

    def test_the_environment_is_enough(self, server: LocalS3, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, value in server.env.items():
            monkeypatch.setenv(name, value)
        store = open_store(f"s3a://{server.bucket}/{uuid4().hex}")
        store.put("a", b"x")
        assert store.read("a") == b"x"
        assert store.uri.startswith("s3://")


def test_unknown_schemes() -> None:
    with pytest.raises(UnsupportedStoreError, match="nosuchscheme"):
        open_store("nosuchscheme://a/b").read("c")


def test_other_stores_of_fsspec(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("t/a/b", b"0123456789")
    store = open_store(f"zip://t::file://{tmp_path}/a.zip")
    assert store.read("a/b") == b"0123456789"
    assert store.read_ranges("a/b", [(8, 10), (0, 1)]) == [b"89", b"0"]
    assert [(info.path, info.size) for info in store.list("a")] == [("a/b", 10)]
    assert [info.is_dir for info in store.list("")] == [True]
    assert not store.exists("a/c")
    with pytest.raises(UnsupportedStoreError, match="where there is none"):
        store.put_if_absent("b", b"x")


def test_a_package_that_ignores_exclusive_creation_is_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    system = fsspec.filesystem("memory")
    monkeypatch.setattr(type(system), "pipe_file", lambda self, path, value, **rest: None)
    with pytest.raises(UnsupportedStoreError, match="newer"):
        open_store("memory://x").put_if_absent("a", b"x")


@pytest.mark.parametrize(("protocol", "package"), [("s3", "s3fs"), ("gs", "gcsfs"), ("abfs", "adlfs")])
def test_missing_packages_are_named(protocol: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> None:
        raise ImportError(f"Install {package}")

    monkeypatch.setattr(fsspec, "filesystem", missing)
    monkeypatch.setattr(fsspec.core, "url_to_fs", missing)
    monkeypatch.setattr(fsspec, "get_filesystem_class", missing)
    monkeypatch.setitem(sys.modules, f"{package}.core", None)
    with pytest.raises(UnsupportedStoreError, match=f"pip install {package}") as caught:
        open_store(f"{protocol}://bucket/x").read("a")
    assert caught.value.package == package


@pytest.mark.parametrize(
    ("option", "hint"), [("anonn", "'anon'"), ("aws_acces_key_id", "'aws_access_key_id'"), ("qqqqqqqq", None)]
)
def test_mistyped_options_are_named(option: str, hint: str | None) -> None:
    with pytest.raises(UnsupportedStoreError, match=f"unknown storage option '{option}'") as caught:
        open_store("s3://bucket/x", {option: "secret"}).read("a")
    assert (hint in str(caught.value)) if hint else caught.value.hint is None
    assert "secret" not in str(caught.value)


def test_hdfs_without_its_client(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> None:
        raise OSError("Unable to load libjvm")

    monkeypatch.setattr(fsspec.core, "url_to_fs", missing)
    with pytest.raises(UnsupportedStoreError, match="Hadoop's native client"):
        open_store("hdfs://host/x").read("a")
