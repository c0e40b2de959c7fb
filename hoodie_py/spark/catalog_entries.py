"""Keeps the entries of Spark's catalog correct: the note in a table's columns must name the location of its entry.

A Python source is given neither the name nor the location of a table of the catalog, only its columns
(``catalog_note``). The columns of an entry that Spark makes from a DataFrame (``saveAsTable``, ``writeTo``,
``toTable``), or from columns that a statement declares, have no note, and ``ALTER TABLE ... SET LOCATION`` leaves the
old note. So ``watch_catalog`` listens to the catalog of a classic session, and writes the location of an entry into its
columns whenever one is made or changed. A Connect client has no way to listen.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from pyspark.sql.types import StructType

from hoodie_py.errors import HoodieWarning
from hoodie_py.files import TableFiles
from hoodie_py.spark.catalog_note import annotate, keep_read_options, read_note
from hoodie_py.spark.load_options import PATH
from hoodie_py.spark.process import is_connect

_EXTERNAL = "EXTERNAL"
_CHANGES = ("CreateTableEvent", "AlterTableEvent")


class CatalogListener:
    """Listens to changes of a catalog's tables; Spark calls it in the thread of the statement.

    ``names``: the names of this package's source in any session of the catalog.
    """

    def __init__(self, catalog: Any, jvm: Any) -> None:
        self.names: set[str] = set()
        self._catalog = catalog
        self._jvm = jvm

    def onEvent(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Handle a table that was made or changed. Errors become warnings, as Spark would only log them."""
        if event.getClass().getSimpleName() not in _CHANGES:
            return
        try:
            self._look(event.database(), event.name())
        except Exception as error:  # noqa: BLE001 - py4j and Spark raise their own
            text = f"The entry {event.name()} of Spark's catalog was not given its location: {str(error)[:300]}"
            warnings.warn(HoodieWarning(text), stacklevel=2)

    def _look(self, database: str, name: str) -> None:
        table = self._catalog.getTable(database, name)
        provider, location = table.provider(), table.storage().locationUri()
        if not provider.isDefined() or provider.get().lower() not in self.names:
            return
        if table.tableType().name() != _EXTERNAL or not location.isDefined():
            return
        columns = StructType.fromJson(json.loads(table.schema().json()))
        path = self._jvm.org.apache.hadoop.fs.Path(location.get()).toString()  # as Spark: without percent-encoding
        wanted = self._make_note(columns, path, table.storage().properties())
        if columns.fields and wanted != read_note(columns):
            made = self._jvm.org.apache.spark.sql.types.DataType.fromJson(annotate(columns, wanted).json())
            self._catalog.alterTableDataSchema(database, name, made)

    def _make_note(self, columns: StructType, location: str, properties: Any) -> dict[str, str]:
        """Return the note that the columns should carry; options noted for another location are dropped."""
        path = TableFiles.open(location).uri if location.startswith("file:") else location
        noted = read_note(columns)
        if noted.get(PATH) == path:
            return noted
        given: Mapping[str, str] = self._jvm.scala.jdk.javaapi.CollectionConverters.asJava(properties)
        return {PATH: path, **keep_read_options({str(each): str(given[each]) for each in given})}

    class Java:
        """What py4j needs to know."""

        implements: ClassVar[list[str]] = ["org.apache.spark.sql.catalyst.catalog.ExternalCatalogEventListener"]


_LISTENERS: WeakKeyDictionary[Any, CatalogListener] = WeakKeyDictionary()  # by SparkContext


def watch_catalog(spark: Any, names: tuple[str, ...]) -> None:
    """Keep the entries of a classic session's catalog correct for tables of these sources.

    All sessions of a SparkContext share one catalog, which gets one listener. A warning is given if that fails.
    """
    if is_connect(spark):
        return
    from pyspark.java_gateway import ensure_callback_server_started

    context = spark.sparkContext
    listener = _LISTENERS.get(context)
    if listener is None:
        try:
            ensure_callback_server_started(context._gateway)  # type: ignore[no-untyped-call] # noqa: SLF001 - as streams
            catalog = spark._jsparkSession.sharedState().externalCatalog()  # noqa: SLF001
            listener = CatalogListener(catalog, spark._jvm)  # noqa: SLF001
            catalog.addListener(listener)
        except Exception as error:  # noqa: BLE001 - py4j's errors, and whatever a metastore says
            text = f"Changes of entries of Spark's catalog do not reach Hudi tables: {str(error)[:300]}"
            warnings.warn(HoodieWarning(text), stacklevel=4)
            return
        _LISTENERS[context] = listener
    listener.names.update(each.lower() for each in names)
