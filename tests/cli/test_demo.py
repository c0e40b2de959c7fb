from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_py import HoodieTable
from hoodie_py.cli import java
from hoodie_py.cli.merge_view import key_stories


@pytest.mark.smoke
def test_demo_shows_what_the_merge_did(hoodie) -> None:
    shown = hoodie("demo", "--no-spark").stdout
    assert "4 deleted" in shown
    assert "2 updated" in shown
    lines = {line.split()[0]: line for line in shown.splitlines() if line.startswith("k")}
    assert lines["k1"].split()[-4:] == ["late", "2.0", "35", "updated"]
    assert "ts 30, delete, ts 35" in lines["k1"]
    assert lines["k5"].endswith("deleted")
    assert lines["k6"].endswith("unchanged")


@pytest.mark.parametrize("width", [80, 120])
def test_demo_fits_the_terminal(hoodie, width: int) -> None:
    shown = hoodie("demo", "--no-spark", env={"COLUMNS": str(width)}).stdout
    assert max(map(len, shown.splitlines())) <= width


def test_kept_table_is_a_table(hoodie, tmp_path: Path) -> None:
    place = tmp_path / "new" / "table"
    assert f"hoodie read {place}" in hoodie("demo", "--no-spark", "--keep", place).stdout.replace("\n", " ")
    assert HoodieTable.open(place).scan().count() == 4
    again = hoodie("demo", "--no-spark", "--keep", place, status=1)
    assert "--keep" in again.stderr


def test_nothing_stays_without_keep(hoodie, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    hoodie("demo", "--no-spark")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.s3
def test_table_may_be_kept_in_s3(hoodie) -> None:
    pytest.importorskip("moto", reason="NOT TESTED: the local S3 server is not installed")
    from hoodie_py.testing import local_s3

    with local_s3(bucket="demo") as s3:
        options = ["--endpoint-url", s3.endpoint_url]
        for name in ("key", "secret"):
            options += ["--storage-option", f"{name}={s3.storage_options[name]}"]
        done = hoodie("demo", "--no-spark", "--keep", f"{s3.uri}/table", *options)
        assert s3.storage_options["secret"] not in done.output
        assert len(hoodie("read", f"{s3.uri}/table", "--json", *options).stdout.splitlines()) == 4


def test_without_java_it_says_what_to_install_and_goes_on(hoodie, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "find_java", lambda: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    shown = hoodie("demo").stdout
    assert "Install Java" in shown
    assert "Next" in shown


def test_spark_that_does_not_start_is_an_error(hoodie, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark", reason="NOT TESTED: pyspark is not installed")
    from hoodie_py.cli import demo_spark

    def fail(debug: bool) -> None:
        raise RuntimeError("JAVA_GATEWAY_EXITED\nand more")

    monkeypatch.setattr(java, "missing_for_spark", lambda: None)
    monkeypatch.setattr(demo_spark, "_session", fail)
    done = hoodie("demo", status=1)
    assert "JAVA_GATEWAY_EXITED" in done.stderr
    assert "hoodie doctor" in done.stderr


def test_spark_gives_the_same_rows(hoodie, spark) -> None:
    assert "The same rows as above." in hoodie("demo").stdout


def test_inserted_records_are_seen(corpus) -> None:
    table = HoodieTable.open(corpus("logonly_bucket_mor_v9"))
    stories = {story.key: story for story in key_stories(table, ["name", "ts"])}
    outcomes = {key: story.outcome for key, story in stories.items()}
    assert outcomes["k9"] == "inserted"
    assert outcomes["k1"] == "updated"
    assert sorted(outcomes.values()).count("deleted") == 1
    assert stories["k9"].log == ["ts 20"]
