"""Spans and measurements: a program that uses OpenTelemetry gets them, and another one imports nothing of it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from hoodie_py import HoodieTable
from hoodie_py.runtime import telemetry
from hoodie_py.writer.upkeep.judge import PLANNED
from tests.corpus import ROOT

pytest.importorskip("opentelemetry.sdk", reason="NOT TESTED: opentelemetry-sdk is not installed")

# A process of its own: OpenTelemetry's providers are set once, and other tests should not be watched.
_USES_OPENTELEMETRY = """
import json, sys
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(spans))
trace.set_tracer_provider(provider)
metrics.set_meter_provider(MeterProvider([reader]))
mine = trace.get_tracer("mine")
"""
_PROGRAM = (
    _USES_OPENTELEMETRY
    + """
import pyarrow as pa
from hoodie_py import HoodieTable, InvalidQueryError
from hoodie_storage.retry import RetryPolicy, call_with_retries

schema = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64())])
table = HoodieTable.create(sys.argv[1], schema, record_key="id", ordering="ts", partition_by=["city"])
rows = [{"id": f"PERSON-{n}", "city": f"PLACE-{n % 3}", "ts": 1} for n in range(9)]
options = {"hoodie_py.read.threads": "3"}

with mine.start_as_current_span("writes"):
    table.upsert(rows)
    table.upsert([{**rows[0], "ts": 2}, {**rows[3], "ts": 2}])
with mine.start_as_current_span("reads"):
    assert table.scan(options=options, filter="id <> 'PERSON-1'").to_arrow().num_rows == 8
with mine.start_as_current_span("early end"):
    batches = table.scan(options=options).to_batches()
    next(batches)
    mine.start_span("between batches").end()
    batches.close()
with mine.start_as_current_span("changes"):
    table.incremental().count()
with mine.start_as_current_span("services"):
    table.compact()
    table.clean()
table.upsert([{**rows[0], "ts": 3}])
with mine.start_as_current_span("turn"):
    table.services(run=True, options={"hoodie.compact.inline.max.delta.commits": "1"}, only=["compaction"])
with mine.start_as_current_span("failure"):
    try:
        table.upsert([{"id": "PERSON-1", "city": "PLACE-1", "ts": "SOME TEXT"}])
    except InvalidQueryError:
        pass
answers = iter([OSError("PASSWORD"), "read"])

def call():
    answer = next(answers)
    if isinstance(answer, OSError):
        raise answer
    return answer

with mine.start_as_current_span("retry"):
    call_with_retries(call, RetryPolicy(first_pause=0.0), lambda error: True)

found = [json.loads(span.to_json()) for span in spans.get_finished_spans()]
points = [
    {"name": metric.name, "unit": metric.unit, **json.loads(point.to_json())}
    for each in reader.get_metrics_data().resource_metrics for scope in each.scope_metrics
    for metric in scope.metrics for point in metric.data.data_points
]
print(json.dumps([found, points]))
"""
)

PAGE = ROOT / "docs" / "telemetry.md"
Watched = tuple[list[dict[str, Any]], list[dict[str, Any]]]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("watched") / "t"


@pytest.fixture(scope="module")
def watched(table: Path) -> Watched:
    run = subprocess.run([sys.executable, "-c", _PROGRAM, str(table)], capture_output=True, text=True, check=True)
    spans, points = json.loads(run.stdout)
    return spans, points


def children(spans: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    [parent] = [each for each in spans if each["name"] == name]
    return [each for each in spans if each["parent_id"] == parent["context"]["span_id"]]


def names(spans: list[dict[str, Any]]) -> list[str]:
    return sorted(each["name"] for each in spans)


def total(points: list[dict[str, Any]], name: str, **attributes: str) -> int:
    wanted = {f"hoodie.{key}": value for key, value in attributes.items()}.items()
    return sum(each["value"] for each in points if each["name"] == name and wanted <= each["attributes"].items())


def test_a_scan_has_its_plan_and_its_slices_as_children_though_threads_read_them(watched: Watched) -> None:
    [scan] = children(watched[0], "reads")
    parts = [each for each in watched[0] if each["parent_id"] == scan["context"]["span_id"]]
    assert names(parts) == [
        "hoodie_py.merge_slice",
        "hoodie_py.plan",
        "hoodie_py.read_slice",
        "hoodie_py.read_slice",
    ]
    assert scan["attributes"]["hoodie.rows"] == 8
    merged = next(each["attributes"] for each in parts if each["name"] == "hoodie_py.merge_slice")
    assert (merged["hoodie.files"], merged["hoodie.log_records"], merged["hoodie.rows_updated"]) == (2, 2, 2)
    assert next(each["attributes"] for each in parts if each["name"] == "hoodie_py.plan")["hoodie.slices"] == 3


def test_what_a_caller_does_between_batches_is_no_child_of_the_scan_and_an_early_end_no_error(watched: Watched) -> None:
    found = {each["name"]: each for each in children(watched[0], "early end")}
    assert found.keys() == {"hoodie_py.scan", "between batches"}
    assert found["hoodie_py.scan"]["status"]["status_code"] == "UNSET"
    assert not [each for each in watched[0] if each["events"] and each["name"].endswith("_slice")]


def test_a_write_has_its_files_and_its_commit_as_children(watched: Watched) -> None:
    writes = children(watched[0], "writes")
    assert names(writes) == ["hoodie_py.write", "hoodie_py.write"]
    first = min(writes, key=lambda each: each["start_time"])
    parts = [each for each in watched[0] if each["parent_id"] == first["context"]["span_id"]]
    assert names(parts) == ["hoodie_py.commit", "hoodie_py.lock", *["hoodie_py.write_file"] * 3]
    facts = first["attributes"]
    assert (facts["hoodie.write_operation"], facts["hoodie.rows_inserted"], facts["hoodie.file_groups"]) == (
        "upsert",
        9,
        3,
    )
    commit = next(each["attributes"] for each in parts if each["name"] == "hoodie_py.commit")
    assert (commit["hoodie.instant"], commit["hoodie.action"]) == (facts["hoodie.instant"], "deltacommit")


def test_services_have_spans_with_what_they_did(watched: Watched) -> None:
    found = {each["name"]: each["attributes"] for each in children(watched[0], "services")}
    assert {"hoodie_py.compaction", "hoodie_py.clean"} <= found.keys()
    assert found["hoodie_py.compaction"]["hoodie.rows_written"] == 3
    [service] = [each for each in children(watched[0], "turn") if each["name"] == "hoodie_py.service"]
    assert service["attributes"]["hoodie.service"] == "compaction"
    [compaction] = [each for each in children(watched[0], "hoodie_py.service") if each["name"] != "hoodie_py.lock"]
    parts = [each for each in watched[0] if each["parent_id"] == compaction["context"]["span_id"]]
    assert "hoodie_py.compact_slice" in names(parts)


def test_an_error_is_on_its_span_without_its_text(watched: Watched) -> None:
    [write] = children(watched[0], "failure")
    assert write["status"] == {"status_code": "ERROR", "description": "InvalidQueryError"}
    [event] = write["events"]
    assert event["attributes"]["exception.type"] == "hoodie_py.errors.InvalidQueryError"
    assert "pipeline/write.py" in event["attributes"]["exception.stacktrace"]
    [retry] = next(each for each in watched[0] if each["name"] == "retry")["events"]
    assert (retry["name"], retry["attributes"]) == ("hoodie_py.retry", {"error.type": "OSError"})


def test_measurements_count_rows_files_bytes_retries_and_seconds(watched: Watched, table: Path) -> None:
    points = watched[1]
    at = HoodieTable.open(table).files.uri
    assert total(points, "hoodie_py.write.rows", operation="write", change="inserted", table=at) == 9
    assert total(points, "hoodie_py.write.rows", operation="write", change="updated", table=at) == 3
    assert total(points, "hoodie_py.write.rows", operation="compaction", table=at) == 6
    assert total(points, "hoodie_py.read.rows", table=at) > 9
    assert total(points, "hoodie_py.read.files", table=at) > total(points, "hoodie_py.read.slices", table=at) > 0
    assert total(points, "hoodie_py.read.bytes", table=at) > 1000
    assert total(points, "hoodie_py.store.retries") == 1
    times = [each for each in points if each["name"] == "hoodie_py.operation.duration"]
    writes = [each for each in times if each["attributes"]["hoodie.operation"] == "write"]
    assert {each["unit"] for each in times} == {"s"}
    assert sorted(each["count"] for each in writes) == [1, 3]
    assert [each["attributes"].get("error.type") for each in writes if each["count"] == 1] == ["InvalidQueryError"]


def test_nothing_has_values_of_rows_or_texts_of_errors(watched: Watched) -> None:
    text = json.dumps(watched)
    for value in ("PERSON", "PLACE", "SOME TEXT", "PASSWORD"):
        assert value not in text


def test_the_package_imports_nothing_of_opentelemetry() -> None:
    """tests/test_cold_start.py looks at what a read imports."""
    sources = [each.read_text() for name in ("hoodie_py", "storage") for each in (ROOT / name).rglob("*.py")]
    assert len(sources) > 300
    assert not [each for each in sources if "import opentelemetry" in each or "from opentelemetry" in each]


def test_what_the_page_shows_prints_spans_and_measurements(tmp_path: Path) -> None:
    [program] = re.findall(r"^```py\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    with zipfile.ZipFile(ROOT / "tests" / "data" / "demo_table.zip") as packed:
        packed.extractall(tmp_path / "demo_table")
    arguments = [sys.executable, "-c", program]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "storage")))}
    run = subprocess.run(arguments, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    for name in ("hoodie_py.scan", "hoodie_py.plan", "hoodie_py.merge_slice", "hoodie_py.operation.duration"):
        assert f'"name": "{name}"' in run.stdout


def test_the_page_has_all_spans_and_measurements(watched: Watched) -> None:
    sources = "".join(each.read_text() for each in (ROOT / "hoodie_py").rglob("*.py"))
    operations = set(re.findall(r"""watch(?:_calls|_steps)?\(\s*"(\w+)\"""", sources)) | {"merge_slice", "read_slice"}
    operations |= {each.name.replace(" ", "_") for each in PLANNED}  # their spans are begun by what they have in common
    metrics = {*telemetry._COUNTERS, telemetry._DURATION}
    page = PAGE.read_text()
    assert set(re.findall(r"`hoodie_py\.([\w.]+)`", page)) == operations | metrics | {"retry"}
    seen = {each["name"].removeprefix("hoodie_py.") for each in watched[0] if each["name"].startswith("hoodie_py.")}
    assert seen <= operations
    attributes = {name for spans in watched for each in spans for name in each["attributes"]}
    assert {each for each in attributes if f"`{each}`" not in page} == set()


def test_unwatched_work_runs_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in sys.modules if each.startswith("opentelemetry")]:
        monkeypatch.delitem(sys.modules, name)
    steps = (each for each in [[1]])

    class Nowhere:
        @property
        def uri(self) -> str:
            raise AssertionError("nobody asks where the table is")

    assert telemetry.watch_steps("scan", Nowhere(), steps, len) is steps
    assert telemetry.carry_span(len) is len
    assert telemetry.watch("scan", Nowhere()) is telemetry.watch("plan", Nowhere())
