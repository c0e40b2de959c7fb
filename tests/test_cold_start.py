"""What a fresh process does not import: every query of a command line or a new Spark worker would wait for it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

COMMANDS = "hoodie_py.cli.commands."
TABLE = "event_time_updates_mor_v9"
_FOR_OTHER_STORES = {"fsspec", "asyncio", "ssl", "hoodie_storage.remote", "hoodie_storage.options"}
_FOR_WRITES = {"fastavro", "hashlib", "pyarrow.parquet", "pyarrow.fs"}
_FOR_RARE_TABLES = {
    "hoodie_py.reader.payloads.classes",
    "hoodie_py.reader.memory.spill_directory",
    "hoodie_py.formats.deletes.kryo",
}
_FOR_OPENTELEMETRY = {"opentelemetry.context", "opentelemetry.metrics", "opentelemetry.trace"}
_HEAVY = {"pyarrow.compute", "pathlib", "urllib.parse", "logging", "concurrent.futures"}
_FOR_ROWS = {"hoodie_py.reader.record.batch", "hoodie_py.reader.file_group", "hoodie_py.formats.avro.columnar_decoder"}
_FOR_FILTERS = {
    "hoodie_py.table.filter.evaluate",
    "hoodie_py.table.filter.pruning",
    "hoodie_py.table.filter.sql_parser",
}
_FOR_RARE_INSTANTS = {
    "hoodie_py.formats.timeline.plans",
    "hoodie_py.formats.timeline.archive",
    "hoodie_py.table.timeline.archive",
}
_FOR_STATISTICS = {
    "hoodie_py.formats.indexes.bounds",
    "hoodie_py.formats.indexes.ranges",
    "hoodie_py.formats.indexes.measure",
}
_FOR_BOOTSTRAPPED_TABLES = {"hoodie_py.table.view.bootstrap", "hoodie_py.formats.hfile.bootstrap_index"}
_NEVER = (
    _FOR_OTHER_STORES | _FOR_WRITES | _HEAVY | _FOR_RARE_TABLES | _FOR_FILTERS | _FOR_RARE_INSTANTS | _FOR_OPENTELEMETRY
    | _FOR_BOOTSTRAPPED_TABLES
)  # fmt: skip
_LATER = _NEVER | _FOR_ROWS | _FOR_STATISTICS
_FOR_SERVICES = {
    "hoodie_py.writer.clustering.cluster",
    "hoodie_py.writer.services.compaction",
    "hoodie_py.writer.services.log_compaction",
    "hoodie_py.writer.archival.history",
    "hoodie_py.writer.index_jobs.build",
    "hoodie_py.writer.index_jobs.compaction",
    "hoodie_py.table.filter.predicate",
}
_FOR_OPTIONS = {"hoodie_py.options.check", "hoodie_py.options.undone"}
_OF_PYSPARK = {"asyncio", "ssl", "hashlib", "pathlib", "urllib.parse", "logging", "concurrent.futures"}
_SMALL_COMMAND = """
import numpy, pyarrow, typer
app = typer.Typer()
@app.command()
def greet(name: str = "you") -> None: ...
app([], standalone_mode=False)
"""


def imported(code: str, *arguments: str) -> set[str]:
    program = f"import json, sys\n{code}\nprint(json.dumps(list(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
    return set(json.loads(run.stdout))


def test_planning_a_local_scan_imports_no_more_than_it_needs(corpus: Callable[[str], Path]) -> None:
    code = "import hoodie_py\nassert hoodie_py.HoodieTable.open(sys.argv[1]).scan().tasks()"
    assert imported(code, str(corpus(TABLE))) & (_LATER | _FOR_OPTIONS) <= imported("import numpy, pyarrow")


def test_reading_merged_rows_imports_nothing_for_other_tables_stores_or_writes(corpus: Callable[[str], Path]) -> None:
    code = "import hoodie_py\nassert hoodie_py.HoodieTable.open(sys.argv[1]).scan().to_arrow().num_rows"
    assert imported(code, str(corpus(TABLE))) & (_NEVER | _FOR_OPTIONS) <= imported("import numpy, pyarrow")


def test_reading_a_range_imports_nothing_for_writes_or_other_stores(corpus: Callable[[str], Path]) -> None:
    code = "import hoodie_py\nassert hoodie_py.HoodieTable.open(sys.argv[1]).incremental().to_arrow().num_rows"
    unneeded = _FOR_OTHER_STORES | _FOR_WRITES | _FOR_RARE_TABLES | {"pandas", "hoodie_py.table.filter.sql_parser"}
    assert imported(code, str(corpus(TABLE))) & unneeded <= imported("import numpy, pyarrow")


def test_a_first_write_of_known_keys_imports_no_service_no_filter_and_nothing_for_other_files(
    corpus_copy: Callable[[str], Path],
) -> None:
    code = """
import hoodie_py
table = hoodie_py.HoodieTable.open(sys.argv[1])
rows = table.scan(limit=1).to_arrow()
rows = rows.drop_columns([name for name in rows.column_names if name.startswith("_hoodie")])
assert table.upsert(rows).rows_updated
"""
    unneeded = (
        _FOR_OTHER_STORES | _FOR_RARE_TABLES | _FOR_FILTERS | _FOR_BOOTSTRAPPED_TABLES | _FOR_SERVICES | {"pyarrow.fs"}
    )
    assert imported(code, str(corpus_copy(TABLE))) & unneeded <= imported("import numpy, pyarrow")


def test_planning_for_spark_imports_no_more_than_it_needs(corpus: Callable[[str], Path]) -> None:
    pytest.importorskip("pyspark", reason="NOT TESTED: pyspark is not installed")
    code = """
from pyspark_hoodie import DefaultSource
source = DefaultSource({"path": sys.argv[1]})
assert source.reader(source.schema()).partitions()
"""
    assert imported(code, str(corpus(TABLE))) & (_LATER - _OF_PYSPARK) == set()


def run_command(*arguments: str) -> set[str]:
    """Return the modules that a command imports."""
    code = """
from hoodie_py.cli import main
try:
    sys.stdout, out = open("/dev/null", "w"), sys.stdout
    main()
except SystemExit as end:
    assert not end.code
sys.stdout = out
"""
    return imported(code, *arguments)


def test_a_command_imports_no_other_command_and_nothing_for_other_outputs(corpus: Callable[[str], Path]) -> None:
    table = str(corpus(TABLE))
    for name in ("show", "read", "timeline", "slices"):
        found = run_command(name, table)
        assert {each for each in found if each.startswith(COMMANDS)} == {COMMANDS + name}
        unneeded = _FOR_OTHER_STORES | _FOR_WRITES | _FOR_RARE_TABLES | _FOR_FILTERS | _FOR_BOOTSTRAPPED_TABLES
        assert found & unneeded <= imported(_SMALL_COMMAND)


def test_printing_the_version_imports_no_command_and_no_reader() -> None:
    found = run_command("--version")
    assert {each for each in found if each.startswith((COMMANDS, "hoodie_py.formats", "pyarrow", "rich."))} == set()
