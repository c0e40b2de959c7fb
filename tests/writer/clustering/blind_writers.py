"""Writers that do not look at pending clusterings, as Java's of some settings do not."""

from __future__ import annotations

import pytest


def look_away(patched: pytest.MonkeyPatch) -> None:
    """Let writes of this process pass over pending clusterings."""
    patched.setattr("hoodie_py.writer.index.tagging._check_clustering", lambda *_: None)
    patched.setattr("hoodie_py.writer.commit.conflicts.iterate_pending_clusterings", lambda _: ())
