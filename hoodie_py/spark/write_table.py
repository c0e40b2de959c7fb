"""Write a DataFrame, and change a table by expressions, with the workers of a Spark session.

Java: ``HoodieSparkSqlWriter``.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hoodie_py.errors import ConflictError, InvalidQueryError, UnsupportedFeatureError
from hoodie_py.spark.engine import SparkEngine
from hoodie_py.spark.load_options import LoadOptions, to_option_texts
from hoodie_py.spark.mergers import find_session_merger
from hoodie_py.spark.pin import open_table
from hoodie_py.spark.session_options import read_sql_settings
from hoodie_py.spark.types import as_arrow_schema
from hoodie_py.spark.write_options import WriteOptions
from hoodie_py.writer.commit.result import WriteResult
from hoodie_py.writer.pipeline.modify import Modifier
from hoodie_py.writer.pipeline.write import Writer
from hoodie_py.writer.timeline.session import WriteSession

if TYPE_CHECKING:
    from hoodie_py.reader.merge.merger import Merger
    from hoodie_py.writer.lock.lock import Lock

MODES = ("append", "overwrite", "errorifexists", "error", "ignore")


def write_table(
    df: Any,
    options: Mapping[str, Any],
    session_settings: Mapping[str, str],
    mode: str,
    merger: Merger | None,
    lock: Lock | None,
) -> WriteResult:
    """Write a DataFrame; see ``hoodie_py.spark.write`` for arguments and errors."""
    began = time.monotonic()
    if mode not in MODES:
        raise InvalidQueryError(f"The mode cannot be {mode!r}.", hint=f"Give one of {', '.join(MODES)}.")
    parsed = WriteOptions.parse(to_option_texts(options), session_settings, overwrite=mode == "overwrite")
    if parsed.recreates:
        raise UnsupportedFeatureError(
            "Making a table anew by this function: the rows may be read from the table that is removed.",
            hint='Write with df.write.format("hoodie").mode("overwrite").',
        )
    if mode not in ("append", "overwrite") and parsed.open() is not None:
        if mode == "ignore":
            return WriteResult(parsed.operation)
        raise ConflictError(
            "There is a Hudi table already.", hint='Write with mode="append" or "overwrite".', table=parsed.path
        )
    schema = as_arrow_schema(df.schema)
    with parsed.open_or_create(schema) as snapshot:
        chosen = find_session_merger(df.sparkSession, snapshot.config, parsed.settings, merger)
        session = WriteSession.open(snapshot, options=parsed.settings, lock=lock, merger=chosen)
        done = Writer(session, chosen, engine=SparkEngine(df.sparkSession)).write(df, parsed.operation)
    return replace(done, seconds=time.monotonic() - began)


def open_modifier(
    spark: Any, options: Mapping[str, Any], session: Mapping[str, str], merger: Merger | None, lock: Lock | None
) -> Modifier:
    """Return the modifier that changes a table on Spark's workers.

    Raises:
        HoodieError: there is no table, or an option is not valid.
    """
    parsed = LoadOptions.parse(to_option_texts(options), session)
    snapshot = open_table(parsed)
    chosen = find_session_merger(spark, snapshot.config, parsed.hoodie, merger)
    opened = WriteSession.open(snapshot, options=parsed.hoodie, lock=lock, merger=chosen)
    return Modifier(opened, chosen, SparkEngine(spark), read_sql_settings(spark))
