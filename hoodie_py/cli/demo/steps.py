"""The steps of ``hoodie demo``, which runs these functions and prints their bodies.

The rows are always the same, because docs/ explains them.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hoodie_py import HoodieTable, RecordMerger, Scan
from hoodie_py.options.write import BLOOM_ENTRIES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from hoodie_py import CompactionResult, WriteResult

small: dict[str, int] = {BLOOM_ENTRIES: 10}
"""An option of the steps, which print its name: small bloom filters. The default is for 60,000 rows in a file."""


def create(place: str, store: Mapping[str, Any]) -> HoodieTable:
    """Create the table."""
    columns = {"id": pa.string(), "name": pa.string(), "price": pa.float64()}
    columns |= {"qty": pa.int32(), "ts": pa.int64(), "part": pa.string()}
    return HoodieTable.create(
        place,
        pa.schema(columns),
        record_key="id",
        ordering="ts",
        partition_by="part",
        storage_options=store,
    )


def make_row(n: int, name: str, price: float, qty: int, ts: int) -> dict[str, Any]:
    """Return a row of the table."""
    values = {"id": f"k{n}", "name": name, "price": price, "qty": qty, "ts": ts}
    return {**values, "part": f"p{n % 2}"}


def insert(table: HoodieTable) -> WriteResult:
    """Write the first rows; they go to base files."""
    rows = [make_row(n, f"n{n}", 1.5 * n, qty=n, ts=10) for n in range(8)]
    return table.upsert(rows, options=small)


def update(table: HoodieTable) -> WriteResult:
    """Write newer versions of three rows."""
    return table.upsert([make_row(n, "u", 1.0, qty=1, ts=30) for n in range(3)])


def delete(table: HoodieTable) -> WriteResult:
    """Delete by keys."""
    return table.delete(["k0", "k1", "k3", "k4", "k5"])


def arrive_late(table: HoodieTable) -> WriteResult:
    """Bring back two deleted rows, and write an older version of a third one."""
    late = make_row(1, "late", 2.0, qty=2, ts=35)
    back = make_row(3, "back", 2.0, qty=2, ts=60)
    too_late = make_row(6, "old", 12.0, qty=2, ts=5)  # the table has ts 10 already
    return table.upsert([late, back, too_late])


def delete_some(table: HoodieTable) -> WriteResult:
    """Delete rows by a filter."""
    return table.delete("name = 'u'")


class HighestPrice(RecordMerger):
    """A user's merger: the highest price wins; a delete and the version after it win by their order of arrival."""

    strategy_id = "0b1f4a52-7a4f-4b9a-9d0c-5a2b8a5a8f10"

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        """Return the version that wins."""
        if older.is_delete or newer.is_delete:
            return newer
        if context.get_value(newer, "price") > context.get_value(older, "price"):
            return newer
        return older


def read_merged_by_price(table: HoodieTable) -> Scan:
    """Read the table with the user's merger."""
    return table.scan(merger=HighestPrice)


def read_in_spark(spark: SparkSession, path: str, options: Mapping[str, str]) -> DataFrame:
    """Read the table with the Spark data source."""
    return spark.read.format("hoodie").options(**options).load(path)


def compact(table: HoodieTable, spark: SparkSession | None) -> CompactionResult:
    """Merge log files into base files."""
    return table.compact(engine=spark, options=small)


WRITES = (insert, update, delete, arrive_late, delete_some)


def read_code(step: Callable[..., Any] | type, *, whole: bool = False) -> str:
    """Return the code of a step without docstrings and without ``return``.

    ``whole`` returns the whole definition instead of the body.
    """
    lines = textwrap.dedent(inspect.getsource(step)).splitlines()
    node = ast.parse("\n".join(lines)).body[0]
    assert isinstance(node, ast.FunctionDef | ast.ClassDef)
    left_out: set[int] = set()
    for each in ast.walk(node):
        if isinstance(each, ast.FunctionDef | ast.ClassDef):
            text = each.body[0]
            end = text.end_lineno or text.lineno
            left_out.update(range(text.lineno, end + 1 if lines[end : end + 1] != [""] else end + 2))
    if not whole:
        left_out.update(range(1, node.body[0].lineno))
    shown = [line for number, line in enumerate(lines, 1) if number not in left_out]
    code = textwrap.dedent("\n".join(shown))
    return code if whole else re.sub(r"^return ", "", code, flags=re.MULTILINE)
