"""StorageTests: a conformance suite for users' own stores, run by pytest.

    from hoodie_py.testing import StorageTests

    class TestMyStore(StorageTests):
        @pytest.fixture
        def store(self):
            return MyStore(...)

The rules are those of ``hoodie_storage``'s operations. A store that passes can hold a table: ``TableFiles(store)``. For
stores with conditional writes, which table locks need, also subclass ``ConditionalStorageTests``.
"""

from __future__ import annotations

import os
import pickle
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hoodie_storage import AlreadyExistsError, ChangedError, FileInfo, NotFoundError, PathError, ShortReadError, Store

BAD_PATHS = ["../x", "a/../x", "a/..", "/x", "a//b", "./a", "a\\b", "a\0b", "s3://other/x", "file:/etc/passwd", "a/"]


def unasked(size: int) -> memoryview:
    """Fail, because no memory may be requested for a missing file."""
    raise AssertionError(size)


class StorageTests:
    """Subclass it and define the fixture ``store``, an empty store for each test; pytest runs the tests.

    Examples:
        >>> import pytest
        >>> class TestMyStore(StorageTests):
        ...     @pytest.fixture
        ...     def store(self, tmp_path):
        ...         return TableFiles.open(str(tmp_path)).store
    """

    def test_reads_what_was_put(self, store: Store) -> None:
        for content in (b"", b"x", bytes(range(256)) * 4096):
            store.put("a/b/c", content)
            assert store.read("a/b/c") == content
            view = store.read_view("a/b/c", lambda size: memoryview(bytearray(size)))
            assert view == content
            assert view.readonly
            assert store.stat("a/b/c") == FileInfo("a/b/c", len(content), is_dir=False)

    def test_missing_things(self, store: Store) -> None:
        store.put("a/b", b"x")
        asks: list[Callable[[str], object]] = [store.read, store.stat, store.list]
        asks += [lambda path: store.read_range(path, 0, 1), lambda path: store.read_view(path, unasked)]
        for ask in asks:
            for path in ("nothing", "a/nothing", "a/b/nothing"):
                with pytest.raises(NotFoundError, match="nothing") as caught:
                    ask(path)
                assert isinstance(caught.value, FileNotFoundError)
                assert store.uri in str(caught.value)
        assert not store.exists("a/nothing")

    def test_an_empty_store_has_no_root_or_an_empty_one(self, store: Store) -> None:
        try:
            assert store.list("") == []
        except NotFoundError:
            assert not store.exists("")

    def test_lists_one_level_by_name(self, store: Store) -> None:
        for path in ("t/b", "t/a=1/x", "t/a=1/y/z", "t/.hidden", "t/a", "t/Z", "u"):
            store.put(path, b"12")
        assert store.list("t") == [
            FileInfo("t/.hidden", 2, is_dir=False),
            FileInfo("t/Z", 2, is_dir=False),
            FileInfo("t/a", 2, is_dir=False),
            FileInfo("t/a=1", 0, is_dir=True),
            FileInfo("t/b", 2, is_dir=False),
        ]
        assert [(info.name, info.is_dir) for info in store.list("")] == [("t", True), ("u", False)]
        assert store.list_names("t") == {".hidden", "Z", "a", "a=1/", "b"}
        with pytest.raises(NotFoundError):
            store.list_names("t/no")

    def test_a_file_is_no_folder(self, store: Store) -> None:
        store.put("t/a", b"12")
        with pytest.raises(NotFoundError):
            store.list("t/a")

    def test_listings_are_never_stale(self, store: Store) -> None:
        store.put("t/a", b"1")
        assert [info.name for info in store.list("t")] == ["a"]
        other = pickle.loads(pickle.dumps(store))  # noqa: S301 - its own bytes
        other.put("t/b", b"1")
        assert [info.name for info in store.list("t")] == ["a", "b"]
        other.delete("t/a")
        assert [info.name for info in store.list("t")] == ["b"]
        assert not store.exists("t/a")

    def test_lists_many_in_the_order_asked(self, store: Store) -> None:
        paths = [f"p={number}" for number in range(20)]
        for path in paths:
            store.put(f"{path}/file", b"1")
        asked = [*paths[::-1], "", "p=3"]
        assert store.list_many(asked) == [store.list(path) for path in asked]
        assert store.list_many([]) == []
        with pytest.raises(NotFoundError, match="p=no"):
            store.list_many([*paths, "p=no"])

    def test_reads_ranges(self, store: Store) -> None:
        content = os.urandom(300_000)
        store.put("f", content)
        ranges = [(299_999, 300_000), (0, 10), (5, 5), (100_000, 250_000), (3, 20), (0, 300_000)]
        assert store.read_ranges("f", ranges) == [content[start:stop] for start, stop in ranges]
        assert store.read_range("f", 7, 9) == content[7:9]
        assert store.read_ranges("f", []) == []

    @pytest.mark.parametrize(("start", "stop"), [(9, 11), (10, 11), (50, 60)])
    def test_a_range_past_the_end_is_an_error(self, store: Store, start: int, stop: int) -> None:
        store.put("f", b"0123456789")
        with pytest.raises(ShortReadError):
            store.read_range("f", start, stop)

    def test_a_range_that_is_none_is_an_error(self, store: Store) -> None:
        store.put("f", b"0123456789")
        for start, stop in ((-1, 2), (3, 2)):
            with pytest.raises(ValueError, match="no byte range"):
                store.read_range("f", start, stop)

    def test_put_writes_over(self, store: Store) -> None:
        store.put("f", b"one")
        store.put("f", b"twelve")
        assert store.read("f") == b"twelve"
        assert [info.name for info in store.list("")] == ["f"]

    def test_put_if_absent_writes_once(self, store: Store) -> None:
        store.put_if_absent("t/f", b"first")
        with pytest.raises(AlreadyExistsError) as caught:
            store.put_if_absent("t/f", b"second")
        assert isinstance(caught.value, FileExistsError)
        assert caught.value.identical is False
        assert store.read("t/f") == b"first"
        assert [info.name for info in store.list("t")] == ["f"]

    def test_put_if_absent_knows_its_own_bytes(self, store: Store) -> None:
        store.put_if_absent("f", b"mine alone")
        with pytest.raises(AlreadyExistsError) as caught:
            store.put_if_absent("f", b"mine alone")
        assert caught.value.identical is True
        store.put_if_absent("f", b"mine alone", unique=True)
        with pytest.raises(AlreadyExistsError):
            store.put_if_absent("f", b"not there ", unique=True)

    def test_one_of_many_creators_wins(self, store: Store) -> None:
        def create(number: int) -> bool:
            try:
                store.put_if_absent("race", b"%d" % number)
            except AlreadyExistsError:
                return False
            return True

        with ThreadPoolExecutor(8) as pool:
            won = list(pool.map(create, range(8)))
        assert won.count(True) == 1
        assert store.read("race") == b"%d" % won.index(True)

    def test_delete_is_idempotent(self, store: Store) -> None:
        store.put("t/f", b"x")
        store.delete("t/f")
        store.delete("t/f")
        store.delete("never/was")
        assert not store.exists("t/f")

    @pytest.mark.parametrize("path", BAD_PATHS)
    def test_paths_stay_inside(self, store: Store, path: str) -> None:
        asks = (
            store.read, store.list, store.stat, store.exists, store.delete, store.local_path, store.open,
            store.open_folder,
            lambda path: store.read_range(path, 0, 1),
            lambda path: store.read_ranges(path, []),
            lambda path: store.list_many([path]),
            lambda path: store.put(path, b""),
            lambda path: store.put_if_absent(path, b""),
            store.read_with_etag,
            lambda path: store.put_if_match(path, b"", "1"),
        )  # fmt: skip
        for ask in asks:
            with pytest.raises(PathError):
                ask(path)

    @pytest.mark.parametrize(
        "name", ["a b", "ä→😀", "p=1%2F2", "50%", "a+b&c", "x#y", "what?", "[glob]*", "a:b", "a'b\"c"]
    )
    def test_odd_names(self, store: Store, name: str) -> None:
        store.put(f"{name}/{name}", b"odd")
        assert store.read(f"{name}/{name}") == b"odd"
        assert store.list("") == [FileInfo(name, 0, is_dir=True)]
        assert store.list(name) == [FileInfo(f"{name}/{name}", 3, is_dir=False)]
        store.delete(f"{name}/{name}")
        assert not store.exists(f"{name}/{name}")

    def test_a_sub_store_is_the_folder(self, store: Store) -> None:
        inner = store.open_folder("a/b")
        inner.put("c/d", b"x")
        assert store.read("a/b/c/d") == b"x"
        assert inner.list("c") == [FileInfo("c/d", 1, is_dir=False)]
        assert inner.open_folder("c").read("d") == b"x"
        assert inner.uri == f"{store.uri}/a/b"
        assert store.open_folder("") == store
        with pytest.raises(PathError):
            inner.read("../x")

    def test_travels(self, store: Store) -> None:
        store.put("f", b"x")
        for each in (store, store.open_folder("")):
            copy = pickle.loads(pickle.dumps(each))  # noqa: S301 - its own bytes
            assert copy == each
            assert hash(copy) == hash(each)
            assert copy.uri == each.uri
            assert copy.read("f") == b"x"

    @pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
    def test_works_after_a_fork(self, store: Store) -> None:
        store.put("f", b"x")
        assert store.read("f") == b"x"
        child = os.fork()
        if not child:
            signal.alarm(30)  # a child that hangs is ended
            try:
                os._exit(0 if store.read("f") == b"x" and store.list("")[0].name == "f" else 1)
            finally:
                os._exit(2)
        assert os.waitpid(child, 0)[1] == 0

    def test_says_when_a_file_was_written(self, store: Store) -> None:
        store.put("t/f", b"x")
        now = time.time() * 1000
        found = [store.stat("t/f").modified, store.list("t")[0].modified]
        assert all(each is not None and abs(now - each) < 60_000 for each in found)
        assert store.stat("t").modified is None

    def test_opens_files(self, store: Store) -> None:
        store.put("f", b"0123456789")
        with store.open("f") as file:
            assert (file.size, file.name) == (10, "f")
            assert file.seek(-3, 2) == 7
            assert file.read() == b"789"
        with pytest.raises(NotFoundError):
            store.open("g")


class ConditionalStorageTests:
    """More tests for stores with conditional writes; the fixture ``store`` as for ``StorageTests``.

    Examples:
        >>> import pytest
        >>> class TestMyConditionalStore(ConditionalStorageTests):
        ...     @pytest.fixture
        ...     def store(self, tmp_path):
        ...         return TableFiles.open(str(tmp_path)).store
    """

    def test_replaces_the_version_it_read(self, store: Store) -> None:
        store.put("l/f", b"one")
        data, mark = store.read_with_etag("l/f")
        assert data == b"one"
        newer = store.put_if_match("l/f", b"two", mark)
        assert newer != mark
        assert store.read_with_etag("l/f") == (b"two", newer)
        with pytest.raises(ChangedError, match="another version"):
            store.put_if_match("l/f", b"three", mark)
        assert store.read("l/f") == b"two"

    def test_knows_its_own_replacement(self, store: Store) -> None:
        store.put("f", b"one")
        _, mark = store.read_with_etag("f")
        newer = store.put_if_match("f", b"mine alone", mark)
        assert store.put_if_match("f", b"mine alone", mark, unique=True) == newer
        with pytest.raises(ChangedError):
            store.put_if_match("f", b"mine alone", mark)

    def test_nothing_to_replace(self, store: Store) -> None:
        with pytest.raises(NotFoundError):
            store.read_with_etag("gone")
        store.put("f", b"one")
        _, mark = store.read_with_etag("f")
        store.delete("f")
        with pytest.raises(ChangedError):
            store.put_if_match("f", b"two", mark)
        assert not store.exists("f")

    def test_one_of_many_replacers_wins(self, store: Store) -> None:
        store.put("race", b"start")
        _, mark = store.read_with_etag("race")

        def replace(number: int) -> bool:
            try:
                store.put_if_match("race", b"%d" % number, mark)
            except ChangedError:
                return False
            return True

        with ThreadPoolExecutor(8) as pool:
            won = list(pool.map(replace, range(8)))
        assert won.count(True) == 1
        assert store.read("race") == b"%d" % won.index(True)

    def test_copies_a_local_file_where_there_is_none(self, store: Store, tmp_path: Path) -> None:
        source = tmp_path / "source"
        source.write_bytes(b"x" * 3_000_000)
        store.create_from("t/large", str(source))
        assert store.read("t/large") == source.read_bytes()
        store.create_from("t/large", str(source))  # of this size: taken for the earlier, unanswered attempt
        source.write_bytes(b"y")
        with pytest.raises(AlreadyExistsError):
            store.create_from("t/large", str(source))
        assert [info.name for info in store.list("t")] == ["large"]

    def test_removes_empty_folders_only(self, store: Store) -> None:
        store.put("t/a/b", b"x")
        store.remove_folder("t/a")
        assert store.read("t/a/b") == b"x"
        store.delete("t/a/b")
        store.remove_folder("t/a")
        store.remove_folder("t/a")
        assert not store.exists("t/a")
