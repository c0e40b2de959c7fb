from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from hoodie_py import HoodieTable
from hoodie_py.cli.commands import doctor
from hoodie_py.cli.demo import steps as demo_steps
from hoodie_py.cli.demo.merge_view import collect_key_merges
from tests.corpus import ROOT

DOCUMENTED = ROOT / "tests" / "data" / "demo_table.zip"


def lines_of(shown: str, heading: str) -> dict[str, str]:
    """Lines that begin with a record key, by key, of the part with this heading."""
    part = shown.partition(heading)[2].partition("\n\n")[0]
    assert part, f"no part {heading!r}"
    return {line.split()[0]: line for line in part.splitlines() if line.startswith("k")}


@pytest.mark.smoke
def test_demo_shows_what_the_merge_did(hoodie) -> None:
    shown = hoodie("demo", "--no-spark").stdout
    assert "8 base rows: 2 updated, 4 deleted, 2 unchanged; 4 merged rows" in shown
    lines = lines_of(shown, "What merging did")
    assert lines["k1"].split()[-4:] == ["late", "2.0", "35", "updated"]
    assert "ts 30, delete, ts 35" in lines["k1"]
    assert "ts 30, delete " in lines["k2"]
    assert lines["k5"].endswith("deleted")
    assert "ts 5 " in lines["k6"]
    assert lines["k6"].endswith("unchanged")


def test_a_merger_of_ones_own_changes_the_result(hoodie) -> None:
    """The demo's remark below the rows says which ones differ."""
    shown = hoodie("demo", "--no-spark").stdout
    own = demo_steps.read_code(demo_steps.HighestPrice, whole=True)
    assert len([line for line in own.splitlines() if line]) <= 10
    part = shown.partition("a merger of your own")[2].partition("Compact")[0]
    assert all(line in part for line in own.splitlines())
    rows = [line.split() for line in part.splitlines() if line.startswith("k")]
    assert ["k3", "n3", "4.5", "10"] in rows
    assert ["k6", "old", "12.0", "5"] in rows
    merged = lines_of(shown, "Read it again")
    assert merged["k3"].split()[1:] == ["back", "2.0", "60"]
    assert merged["k6"].split()[1:] == ["n6", "9.0", "10"]


def test_compaction_leaves_base_files_only(hoodie, tmp_path: Path) -> None:
    shown = hoodie("demo", "--no-spark", "--keep", tmp_path / "table").stdout
    assert "The same rows as above." in shown
    table = HoodieTable.open(tmp_path / "table")
    assert [len(each.log_files) for each in table.file_slices()] == [0, 0]
    assert table.scan(query_type="read_optimized").count() == table.scan().count() == 4


@pytest.mark.parametrize("width", [80, 120])
def test_demo_fits_the_terminal(hoodie, width: int) -> None:
    shown = hoodie("demo", "--no-spark", env={"COLUMNS": str(width)}).stdout
    assert max(map(len, shown.splitlines())) <= width


def test_the_code_that_is_shown_runs_and_makes_the_table(tmp_path: Path) -> None:
    """Run the printed code, with the names that the text explains."""
    names: dict[str, object] = {**vars(demo_steps), "place": str(tmp_path / "table"), "store": None}
    code = demo_steps.read_code(demo_steps.create)
    exec(code.replace("HoodieTable.create", "table = HoodieTable.create"), names)
    for step in demo_steps.WRITES:
        exec(demo_steps.read_code(step), names)
    exec(demo_steps.read_code(demo_steps.HighestPrice, whole=True), names)
    assert HoodieTable.open(tmp_path / "table").scan().count() == 4


@pytest.mark.parametrize("step", [demo_steps.create, demo_steps.make_row, *demo_steps.WRITES, demo_steps.HighestPrice])
def test_code_is_narrow_and_without_docstrings(step) -> None:
    for whole in (True, False):
        code = demo_steps.read_code(step, whole=whole)
        assert '"""' not in code
        assert max(map(len, code.splitlines())) <= 85
        assert code == code.strip()


def test_kept_table_is_a_table(hoodie, tmp_path: Path) -> None:
    place = tmp_path / "new" / "table"
    shown = hoodie("demo", "--no-spark", "--no-compact", "--keep", place).stdout.replace("\n", " ")
    assert f"hoodie compact {place}" in shown
    assert HoodieTable.open(place).scan().count() == 4
    again = hoodie("demo", "--no-spark", "--keep", place, status=1)
    assert "--keep" in again.stderr


def test_documented_table_is_what_the_demo_makes(hoodie, tmp_path: Path) -> None:
    """The pages of docs/ show a table that the demo made once, since instants and file names differ each time."""
    hoodie("demo", "--no-spark", "--no-compact", "--keep", tmp_path / "made")
    with zipfile.ZipFile(DOCUMENTED) as packed:
        packed.extractall(tmp_path / "documented")
    made, documented = (HoodieTable.open(tmp_path / name) for name in ("made", "documented"))
    columns = ["name", "price", "qty", "ts", "part"]
    assert collect_key_merges(made, columns) == collect_key_merges(documented, columns)
    assert made.schema == documented.schema
    for table in (made, documented):
        assert [instant.action for instant in table.timeline] == ["deltacommit"] * 5
        assert {each.partition_path: len(each.log_files) for each in table.file_slices()} == {"p0": 4, "p1": 3}


def test_nothing_stays_without_keep(hoodie, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    hoodie("demo", "--no-spark")
    assert list(tmp_path.glob("hoodie-demo-*")) == []  # what remains is the folder of the locks of all tables


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


def test_without_java_it_says_what_to_install_and_goes_on(
    hoodie, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    shown = hoodie("demo").stdout
    assert "Install Java" in shown
    assert "Read it again" in shown
    assert "Next" in shown


def test_spark_that_does_not_start_is_an_error(hoodie, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = pytest.importorskip("pyspark.sql", reason="NOT TESTED: pyspark is not installed")
    from hoodie_py.cli.demo import spark as demo_spark

    def fail(debug: bool) -> None:
        raise RuntimeError("JAVA_GATEWAY_EXITED\nand more")

    monkeypatch.setattr(doctor, "find_missing_for_spark", lambda: None)
    monkeypatch.setattr(sql.SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(demo_spark, "_start_spark", fail)
    done = hoodie("demo", status=1)
    assert "JAVA_GATEWAY_EXITED" in done.stderr
    assert "and more" not in done.stderr
    assert "hoodie doctor" in done.stderr


def test_spark_gives_the_same_rows_and_compacts(hoodie, spark, tmp_path: Path) -> None:
    shown = hoodie("demo", "--keep", tmp_path / "table").stdout
    assert shown.count("The same rows as above.") == 2
    assert "as a Spark job" in shown
    assert "table.compact(engine=spark" in shown
    assert [len(each.log_files) for each in HoodieTable.open(tmp_path / "table").file_slices()] == [0, 0]


def test_inserted_records_are_seen(corpus) -> None:
    table = HoodieTable.open(corpus("logonly_bucket_mor_v9"))
    stories = {story.key: story for story in collect_key_merges(table, ["name", "ts"])}
    outcomes = {key: story.outcome for key, story in stories.items()}
    assert outcomes["k9"] == "inserted"
    assert outcomes["k1"] == "updated"
    assert sorted(outcomes.values()).count("deleted") == 1
    assert stories["k9"].log == ["ts 20"]
