"""Files by which a Flink job says which instant it writes to."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_py.files import TableFiles
from hoodie_py.writer.lock.heartbeat import find_checkpoint

INSTANT, OTHER = "20260101000000000", "20260101000001000"


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ((), None),
        (("ckp_meta/",), None),
        ((f"ckp_meta/{INSTANT}.INFLIGHT",), 0),
        ((f"ckp_meta_job1/{INSTANT}.INFLIGHT",), 0),
        ((f"ckp_meta/{OTHER}.INFLIGHT", f"ckp_meta_b/{INSTANT}.INFLIGHT"), 1),
        ((f"ckp_meta/{INSTANT}.INFLIGHT", f"ckp_meta/{INSTANT}.ABORTED"), 0),
        ((f"ckp_meta/{INSTANT}.INFLIGHT", f"ckp_meta/{INSTANT}.COMPLETED"), None),
        ((f"ckp_meta/{INSTANT}.COMPLETED",), None),
        ((f"ckp_meta/{OTHER}.INFLIGHT", f"other/{INSTANT}.INFLIGHT", "ckp_meta_file"), None),
    ],
)
def test_an_open_checkpoint_is_found(tmp_path: Path, names: tuple[str, ...], found: int | None) -> None:
    folder = tmp_path / ".hoodie/.aux"
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).mkdir() if name.endswith("/") else (folder / name).touch()
    expected = None if found is None else f".hoodie/.aux/{names[found]}"
    assert find_checkpoint(TableFiles.open(tmp_path), INSTANT) == expected
