"""When a thread gives back what Arrow's allocator keeps."""

from __future__ import annotations

from types import SimpleNamespace

import pyarrow as pa
import pytest

from hoodie_py.runtime import unused_memory


@pytest.mark.parametrize(("backend", "calls"), [("mimalloc", 2), ("jemalloc", 0), ("system", 0)])
def test_mimalloc_gives_back_after_every_16_mb_of_files(
    monkeypatch: pytest.MonkeyPatch, backend: str, calls: int
) -> None:
    released: list[str] = []
    pool = SimpleNamespace(backend_name=backend, release_unused=lambda: released.append(backend))
    monkeypatch.setattr(pa, "default_memory_pool", lambda: pool)
    unused_memory.release_after(16 << 20)  # whatever this thread had read before
    released.clear()
    for size in (15 << 20, 1 << 20, 1 << 20, 14 << 20, 1 << 20):
        unused_memory.release_after(size)
    assert len(released) == calls
