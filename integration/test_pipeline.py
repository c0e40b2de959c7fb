"""Run docker/smoke.sh as processes of this machine: an S3 server on a free port, and Spark by spark-submit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from hoodie_py.testing import local_s3
from integration import versitygw

ROOT = Path(__file__).parents[1]
SMOKE = ROOT / "docker" / "smoke.sh"
SPARK_SUBMIT = Path(sys.executable).with_name("spark-submit")
pytestmark = [pytest.mark.spark, pytest.mark.s3, pytest.mark.timeout(1200)]  # half a minute of CPU; Spark starts once


@pytest.fixture(scope="module", params=["moto", pytest.param("versitygw", marks=pytest.mark.thorough)])
def environment(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[str, str]]:
    """Variables that reach an S3 server with a bucket."""
    if request.param == "moto":
        with local_s3("pipeline") as server:
            yield {**server.env, "LANDING": f"{server.uri}/landing", "TABLE": f"{server.uri}/orders"}
        return
    with versitygw.for_tests(tmp_path_factory.mktemp("gateway")) as gateway:
        yield {
            "AWS_ACCESS_KEY_ID": gateway.key,
            "AWS_SECRET_ACCESS_KEY": gateway.secret,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": gateway.endpoint_url,
            "LANDING": f"{gateway.uri}/landing",
            "TABLE": f"{gateway.uri}/orders",
        }


@pytest.mark.classic
def test_the_smoke_script_as_plain_processes(java: int, environment: Mapping[str, str]) -> None:
    if not SPARK_SUBMIT.exists():
        pytest.skip(f"NOT TESTED: there is no {SPARK_SUBMIT}; pip install 'hoodie_py[spark]'")
    python = {"PYTHON": sys.executable, "PYSPARK_PYTHON": sys.executable, "SPARK_SUBMIT": str(SPARK_SUBMIT)}
    here = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "storage")]), "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        [str(SMOKE), "--plain"],
        env={**os.environ, **environment, **python, **here},
        capture_output=True,
        text=True,
        timeout=1000,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "All is well" in done.stdout
    assert "orders, all as the events say" in done.stdout
    assert environment["AWS_SECRET_ACCESS_KEY"] not in done.stdout + done.stderr
    check_steps([json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")])


def check_steps(steps: list[dict]) -> None:
    """Check the pipeline's reports: compaction updates the base files, and cleaning removes old ones."""
    assert [step["step"] for step in steps] == ["upsert", "read", "compact", "read"] * 3 + ["clean"]
    for day in range(3):
        before, after = (step for step in steps[day * 4 : day * 4 + 4] if step["step"] == "read")
        assert (before["snapshot"] == before["read_optimized"]) is (day == 0)
        assert after["read_optimized"] == before["snapshot"]
    assert set(steps[1]["snapshot"]) == {"placed"}
    assert sum(count for count, _ in steps[-2]["read_optimized"].values()) < 300  # some were deleted
    assert steps[-1]["files_deleted"] > 0


def test_check_notices_other_rows(tmp_path: Path) -> None:
    """The comparison with the events can fail."""
    from hoodie_py import HoodieTable

    programs = ROOT / "integration" / "pipeline"
    landing, table = tmp_path / "landing", tmp_path / "orders"
    made = [sys.executable, str(programs / "landing.py"), "--to", str(landing), "--orders", "20"]
    subprocess.run(made, check=True, timeout=300, capture_output=True)
    first = [json.loads(line) for line in (landing / "day-0" / "orders.ndjson").read_text().splitlines()]
    import pyarrow as pa

    rows = pa.Table.from_pylist(first)
    HoodieTable.create(table, rows.schema, record_key="order_id", ordering="updated_at").upsert(rows)
    check = [sys.executable, str(programs / "check.py"), "--landing", str(landing), "--table", str(table)]
    done = subprocess.run(check, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1
    assert "orders differ" in done.stderr
