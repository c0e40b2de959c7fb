"""The note in the columns of a table of Spark's catalog: its path and its read options.

A table of the catalog (``CREATE TABLE t USING hoodie LOCATION '...'``) loses its options before ``reader()``, but keeps
the metadata of its columns. So the metadata of the first column carries the path and the read options, but never
storage options.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql.types import StructField, StructType

from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.spark.load_options import PATH, STORAGE_OPTIONS

_NOTE = "hoodie_py"  # key of the metadata
_CATALOG_OPTIONS = ("provider", "location", "owner", "external", "is_managed_location", "comment")
_ANEW = "DROP TABLE t, then CREATE TABLE t USING hoodie LOCATION '...' without columns"


def keep_read_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return a catalog table's read options without possible credentials and without Spark's own entries."""
    return {
        name: value
        for name, value in options.items()
        if name not in {PATH, STORAGE_OPTIONS, *_CATALOG_OPTIONS} and not name.startswith(("fs.", "spark.", "option."))
    }


def refuse_others(options: Mapping[str, str], noted: Mapping[str, str]) -> None:
    """Refuse read options that a query adds to those of a catalog table.

    Spark (4.0; on Connect up to 4.3) resolves a catalog table once per query, by its name, so other uses of the table
    in the query would be read with the same options.

    Raises:
        UnsupportedFeatureError: there are such options.
    """
    others = [name for name, value in keep_read_options(options).items() if noted.get(name) != value]
    if others:
        raise UnsupportedFeatureError(
            f"Options of a query on a catalog table ({', '.join(sorted(others))}): Spark may give them to other uses.",
            hint='Load the table by its path: spark.read.format("hoodie").option(...).load(path).',
        )


def annotate(schema: StructType, note: Mapping[str, str]) -> StructType:
    """Return the columns with the path and the options in the metadata of the first."""
    first, *others = schema.fields
    metadata = {**(first.metadata or {}), _NOTE: json.dumps(note)}
    return StructType([StructField(first.name, first.dataType, first.nullable, metadata), *others])


def read_note(schema: StructType) -> dict[str, str]:
    """Return the options in the metadata of a catalog table's columns; empty if there is no note."""
    for field in schema.fields:
        note = (field.metadata or {}).get(_NOTE)
        if note:
            return {str(name): str(value) for name, value in json.loads(note).items()}
    return {}


@contextmanager
def explain_columns(noted: Mapping[str, str]) -> Iterator[None]:
    """Explain what to do about a column that Spark's catalog declares differently from the table.

    Raises:
        InvalidQueryError: as the block, with another hint if there is a note.
    """
    try:
        yield
    except InvalidQueryError as error:
        if not noted:
            raise
        raise InvalidQueryError(
            f"Spark's catalog declares other columns than the table has: {error.message}",
            hint=f"ALTER TABLE changes the catalog alone: change the table by HoodieTable.alter(), or {_ANEW}.",
            table=noted.get(PATH),
        ) from error
