"""Environments of other PySpark versions: the locked packages, but for PySpark."""

from __future__ import annotations

import re

import pytest

from integration.spark_versions import LOCKED, VERSIONS, main, make_constraints


@pytest.mark.parametrize("version", VERSIONS)
def test_only_pyspark_differs_from_the_lock(version: str) -> None:
    locked = LOCKED.read_text(encoding="utf-8")
    names = re.findall(r"(?m)^([a-z0-9._-]+)==", locked)
    made = [line for line in make_constraints(locked, version).splitlines() if not line.lstrip().startswith("#")]
    assert f"pyspark[connect]=={version}.*" in made
    assert [re.split(r"[=\[]", line)[0] for line in made] == names
    assert "--hash" not in "".join(made)


def test_a_lock_without_pyspark_is_refused() -> None:
    with pytest.raises(RuntimeError, match="names PySpark 0 times"):
        make_constraints("pyarrow==26.0.1\n", "4.0")


def test_a_version_that_is_not_supported_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["3.5"])
    assert "there is no supported PySpark 3.5" in capsys.readouterr().err
