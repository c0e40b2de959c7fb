"""What scans say where an optional package is missing."""

from __future__ import annotations

import sys

import pytest

from hoodie_py import HoodieTable, UnsupportedFeatureError


@pytest.mark.parametrize("package", ["pandas", "polars", "duckdb"])
def test_a_missing_package_is_named(corpus, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scan = HoodieTable.open(corpus("basic_mor_v9_part")).scan()
    monkeypatch.setitem(sys.modules, package, None)  # what Python has for a package that cannot be imported
    with pytest.raises(UnsupportedFeatureError, match=f"{package} is not installed") as caught:
        scan.to_duckdb("rows") if package == "duckdb" else getattr(scan, f"to_{package}")()
    assert caught.value.hint == f"pip install 'hoodie_py[{package}]'"
