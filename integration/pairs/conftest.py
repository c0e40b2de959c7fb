"""Where the tables of pairs lie in tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.crash.children import warm_up_for_s3
from integration.crash.stores import Bucket, Folder
from integration.pairs.trials import Bench, warm_up_all


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A folder of the disk."""
    warm_up_all()
    (tmp_path / "t").mkdir()
    return Bench(Folder(tmp_path / "t"))


@pytest.fixture
def s3_bench() -> Iterator[Bench]:
    """A bucket of a server in a process of its own."""
    warm_up_all()
    warm_up_for_s3()
    bucket = Bucket()
    yield Bench(bucket)
    bucket.close()
