"""What the columns of a table of Spark's catalog carry."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="NOT TESTED: pyspark is not installed")

from pyspark.sql.types import LongType, StringType, StructField, StructType

from hoodie_py import InvalidQueryError
from hoodie_py.spark.catalog_note import annotate, explain_columns, read_note

COLUMNS = StructType([StructField("id", StringType(), metadata={"comment": "key"}), StructField("v", LongType())])


def test_the_note_goes_with_the_columns() -> None:
    note = {"path": "/t", "as.of.instant": "2026"}
    noted = annotate(annotate(COLUMNS, {"path": "/old"}), note)
    assert read_note(StructType.fromJson(noted.jsonValue())) == note
    assert noted["id"].metadata["comment"] == "key"
    assert read_note(COLUMNS) == {}


def test_an_error_about_columns_says_what_the_catalog_has_to_do_with_it() -> None:
    with (
        pytest.raises(InvalidQueryError, match=r"catalog declares other columns.*Unknown column 'x'.*table=/t.*DROP"),
        explain_columns({"path": "/t"}),
    ):
        raise InvalidQueryError("Unknown column 'x'.")
    with pytest.raises(InvalidQueryError, match=r"^Unknown column 'x'\.$"), explain_columns({}):
        raise InvalidQueryError("Unknown column 'x'.")
