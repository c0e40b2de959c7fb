from __future__ import annotations

import sys

import pytest

from hoodie_py import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.catalog import open_catalog
from hoodie_py.options.check import check_write_options
from hoodie_py.options.sync import GLUE_TOOL, HIVE_TOOL, find_kinds

HIVE, META = "hoodie.datasource.hive_sync.enable", "hoodie.datasource.meta.sync.enable"
MODE, TOOLS = "hoodie.datasource.hive_sync.mode", "hoodie.meta.sync.client.tool.class"


@pytest.mark.parametrize("kind", ["unity", "polaris", "rest", "iceberg", "datahub", "bigquery"])
def test_catalogs_without_a_place_for_hudi_say_why(kind) -> None:
    with pytest.raises(UnsupportedFeatureError) as caught:
        open_catalog(kind)
    assert "There are hive and glue." in str(caught.value)


def test_no_such_kind() -> None:
    with pytest.raises(InvalidQueryError, match="no kind of catalog 'hvie'"):
        open_catalog("hvie")


@pytest.mark.parametrize(("kind", "extra"), [("hive", "hive"), ("glue", "glue")])
def test_a_missing_package_is_named(kind, extra, monkeypatch) -> None:
    for package in ("thriftpy2", "boto3"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InvalidQueryError, match=rf"hoodie_py\[{extra}\]"):
        open_catalog(kind)


@pytest.mark.parametrize(
    ("options", "kinds"),
    [
        ({}, []),
        ({HIVE: "false", MODE: "hms"}, []),
        ({HIVE: "true", MODE: "hms"}, ["hive"]),
        ({META: "true", MODE: "hms"}, ["hive"]),
        ({META: "true", TOOLS: GLUE_TOOL}, ["glue"]),
        ({META: "true", TOOLS: f"{HIVE_TOOL},{GLUE_TOOL}", MODE: "HMS"}, ["hive", "glue"]),
        ({HIVE: "true", MODE: "glue"}, ["glue"]),
    ],
)
def test_which_catalogs_a_write_tells(options, kinds) -> None:
    assert find_kinds(options) == kinds


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({HIVE: "true"}, "by JDBC"),
        ({HIVE: "true", MODE: "jdbc"}, "mode=jdbc"),
        ({META: "true", TOOLS: "org.apache.hudi.sync.datahub.DataHubSyncTool"}, "DataHubSyncTool"),
    ],
)
def test_what_a_write_cannot_tell_is_refused_before_it(options, said) -> None:
    with pytest.raises(UnsupportedFeatureError, match=said):
        check_write_options(options)
