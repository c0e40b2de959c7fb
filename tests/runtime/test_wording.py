from __future__ import annotations

from hoodie_py.runtime.wording import format_count


def test_numbers_have_nouns() -> None:
    assert [format_count(n, "row") for n in (0, 1, 1234)] == ["0 rows", "1 row", "1,234 rows"]
