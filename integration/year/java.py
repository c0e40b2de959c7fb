"""After a year of commits by this package: Java Hudi reads the table and goes on, and this package after it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from hoodie_py import HoodieTable
from integration.java_hudi import tables
from integration.java_hudi.environment import find_or_make
from integration.java_hudi.session import JavaSession
from integration.year.model import COLUMNS, Row, YearModel, iterate_rows
from integration.year.year import SERVICES, Difference, Kind

_COMMITS = 12  # Java's, so that it compacts, cleans and archives what is there


def go_on_with_java(path: Path, kind: Kind, model: YearModel, folder: Path) -> str:
    """Let Java read the table, write to it with its services, and read again; write after that, and say what was done.

    Raises:
        Difference: a read is not what the model says.
    """
    java_kind = tables.Kind(kind.version, partitioned=True, metadata=kind.metadata, merge_on_read=kind.merge_on_read)
    compacts = str(kind.merge_on_read).lower()
    options = java_kind.write_options | SERVICES | {"hoodie.compact.inline": compacts, "hoodie.table.name": "table"}
    with JavaSession(find_or_make(), folder) as java:

        def compare(what: str) -> None:
            ours = HoodieTable.open(path).scan(columns=COLUMNS).to_arrow()
            for name, found in (("Java", java.read(path)), ("Java, listing", java.read(path, metadata=False)),
                                ("this package", ours)):  # fmt: skip
                if sorted(iterate_rows(found)) != _sort(model):
                    raise Difference(f"{what}: {name} reads other rows")
            if kind.metadata and java.wrong_metadata(path):
                raise Difference(f"{what}: the metadata table names other files than there are")

        compare("at the end of the year")
        last = max(row[2] for row in model.rows.values())
        for commit in range(last + 1, last + 1 + _COMMITS):
            _, data = model.make_next(commit * 10)  # an upsert
            java.write(path, data, options)
            _note(model, "upsert", data)
        compare("after Java's commits")
        table = HoodieTable.open(path)
        _, data = model.make_next((last + _COMMITS + 1) * 10)
        table.upsert(data, kind.options)
        _note(model, "upsert", data)
        compare("after one more commit of this package")
        active = len(HoodieTable.open(path).timeline)
    return f"Java read the table and made {_COMMITS} commits, this package one more; {active} instants are active"


def _note(model: YearModel, operation: str, data: pa.Table) -> None:
    model.note(operation, data, "", "")


def _sort(model: YearModel) -> list[Row]:
    return sorted(model.rows.values())
