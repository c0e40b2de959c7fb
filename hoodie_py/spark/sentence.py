"""Puts the message of an error in front of its traceback, where users of Spark see it.

Spark shows the text of a worker's traceback, whose last line is the message, below a screen of frames. Python prints
the cause of an error before the error, and prints no frames of a cause that was never raised. So each method that Spark
calls raises its error with a copy of it as the cause. PySpark removes causes when it shortens a traceback, as it does
by default; this one cannot be removed. Spark's own words remain in front ("Failed to create Python data source
instance:").
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager

from hoodie_py.errors import HoodieError


@contextmanager
def put_sentence_first() -> Iterator[None]:
    """Let the text of an error's traceback begin with its message; the real cause of the error becomes a note.

    Raises:
        HoodieError: as the block.
    """
    try:
        yield
    except HoodieError as error:
        if "__cause__" in vars(type(error)):  # an inner block did it
            raise
        cause = error.__cause__
        if cause is not None and not isinstance(cause, HoodieError):
            error.add_note(f"It was caused by {type(cause).__name__}: {cause}")
        sentence = copy.copy(error)
        error.__class__ = _make_class(type(error), sentence)
        raise error from sentence


def _make_class(kind: type[HoodieError], sentence: HoodieError) -> type[HoodieError]:
    """Return an error class that looks like another one, but whose cause cannot be removed."""
    members = {
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__doc__": kind.__doc__,
        "__cause__": property(lambda _: sentence, lambda _, __: None),
    }
    return type(kind.__name__, (kind,), members)
