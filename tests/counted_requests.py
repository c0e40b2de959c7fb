"""Count what a piece of code asks the store for; a listing of many folders counts once for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from hoodie_py import files


@dataclass
class Requests:
    """How many requests there were."""

    count: int = 0


@contextmanager
def counting_requests() -> Iterator[Requests]:
    """Count the requests of all tables of this process, for a while."""
    found, real = Requests(), files._call_store

    def count(call: Callable[..., Any], *args: Any, **more: Any) -> Any:
        found.count += len(args[0]) if getattr(call, "__name__", "") == "list_many" else 1
        return real(call, *args, **more)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(files, "_call_store", count)
        yield found
