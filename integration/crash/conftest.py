"""The stores that tests load tables into."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.crash.children import warm_up, warm_up_for_s3
from integration.crash.stores import Bucket, Folder


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    warm_up()
    (tmp_path / "t").mkdir()
    return Folder(tmp_path / "t")


@pytest.fixture
def bucket() -> Iterator[Bucket]:
    warm_up()
    warm_up_for_s3()
    made = Bucket()
    yield made
    made.close()
