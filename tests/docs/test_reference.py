"""The reference page has every public name, once, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import hoodie_py
from hoodie_py import testing

PAGE = Path(__file__).parents[2] / "docs" / "reference.md"


def test_every_public_name_is_described_once() -> None:
    documented = re.findall(r"^\| `(?:hoodie_py\.testing\.)?(\w+)` \|", PAGE.read_text(), re.MULTILINE)
    assert sorted(documented) == sorted({*hoodie_py.__all__, *testing.__all__, "local_s3_server"})
