from __future__ import annotations

import json

import pytest

from tests.metastore.test_sync import make_table

pytest.importorskip("moto", reason="NOT TESTED: moto is not installed")


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch):
    from moto import mock_aws

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        yield


GLUE = ("--catalog", "glue", "--catalog-option", "region_name=eu-west-1", "--database", "lake")


def test_a_table_is_registered(hoodie, aws, tmp_path) -> None:
    make_table(tmp_path / "trips")
    told = hoodie("sync", tmp_path / "trips", *GLUE, "--dry-run").stdout
    assert told == "lake.trips is new: 2 partitions added.\nDry run: nothing was written to the catalog.\n"
    done = json.loads(hoodie("sync", tmp_path / "trips", *GLUE, "--json").stdout)
    assert (done["has_changed"], done["entries"][0]["added"]) == (True, ["p0", "p1"])
    assert hoodie("sync", tmp_path / "trips", *GLUE).stdout == "lake.trips is up to date.\n"


def test_a_catalog_that_is_not_there(hoodie, tmp_path) -> None:
    make_table(tmp_path / "trips")
    failed = hoodie("sync", tmp_path / "trips", "--catalog", "unity", status=1)
    assert failed.stderr.startswith("error: Unity Catalog has no format for Hudi tables")
