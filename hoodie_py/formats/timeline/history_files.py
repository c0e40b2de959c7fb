"""Write the history of timeline layout 2: Parquet files of completed instants, and manifests (Hudi
``LSMTimelineWriter``, ``HoodieLSMTimelineInstant``, ``HoodieLSMTimelineManifest``).

``archive`` reads these files. Columns, types and compression are Java's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from hoodie_py.errors import CorruptFileError, UnsupportedFeatureError
from hoodie_py.formats.timeline.archive import HISTORY_ROW_VERSION, ArchivedInstant, HistoryFile, open_history

HISTORY_SCHEMA = pa.schema(
    [
        pa.field("instantTime", pa.string()),
        pa.field("completionTime", pa.string()),
        pa.field("action", pa.string()),
        pa.field("metadata", pa.binary()),
        pa.field("plan", pa.binary()),
        pa.field("version", pa.int32(), nullable=False),
    ]
)
_JAVA_STRING = {"type": "string", "avro.java.string": "String"}
_AVRO_SCHEMA = {
    "type": "record",
    "name": "HoodieLSMTimelineInstant",
    "namespace": "org.apache.hudi.avro.model",
    "fields": [
        *({"name": name, "type": ["null", _JAVA_STRING], "default": None} for name in HISTORY_SCHEMA.names[:3]),
        *({"name": name, "type": ["null", "bytes"], "default": None} for name in ("metadata", "plan")),
        {"name": "version", "type": "int", "default": HISTORY_ROW_VERSION},
    ],
}
_ROWS = 256
_FOOTER = {"writer.model.name": "avro", "parquet.avro.schema": json.dumps(_AVRO_SCHEMA, separators=(",", ":"))}


def make_history_file_name(times: Sequence[str], level: int) -> str:
    """Return the name of a history file by the request times of its instants."""
    return f"{min(times)}_{max(times)}_{level}.parquet"


def make_manifest_name(number: int) -> str:
    """Return the name of a manifest; a greater number is newer."""
    return f"manifest_{number}"


def encode_manifest(files: Iterable[HistoryFile]) -> bytes:
    """Encode a manifest."""
    listed = [{"fileName": each.name, "fileLen": each.size} for each in files]
    return json.dumps({"files": listed}, indent=2).encode()


def write_history(sink: Any, batches: Iterable[pa.Table]) -> None:
    """Write a history file of rows that ``make_history_rows`` or ``read_history_batches`` gave.

    ``sink`` is a local path or an open file.
    """
    from pyarrow import parquet as pq

    options: dict[str, Any] = {"compression": "gzip", "use_dictionary": False, "store_schema": False}
    with pq.ParquetWriter(sink, HISTORY_SCHEMA, **options) as writer:
        for batch in batches:
            writer.write_table(batch)
        writer.add_key_value_metadata(_FOOTER)


def make_history_rows(instants: Sequence[ArchivedInstant]) -> pa.Table:
    """Return instants as rows of a history file."""
    columns = {
        "instantTime": [each.request_time for each in instants],
        "completionTime": [each.completion_time for each in instants],
        "action": [each.action for each in instants],
        "metadata": [each.metadata for each in instants],
        "plan": [each.plan for each in instants],
        "version": [HISTORY_ROW_VERSION] * len(instants),
    }
    return pa.table(columns, HISTORY_SCHEMA)


def read_history_batches(data: bytes) -> Iterator[pa.Table]:
    """Yield the rows of a history file, some at a time.

    Raises:
        CorruptFileError: not Parquet, or missing columns.
        UnsupportedFeatureError: a row version other than 1.
    """
    file = open_history(data)
    try:
        for batch in file.iter_batches(_ROWS, columns=HISTORY_SCHEMA.names):
            rows = pa.Table.from_batches([batch]).select(HISTORY_SCHEMA.names).cast(HISTORY_SCHEMA)
            if rows["version"].unique().to_pylist() != [HISTORY_ROW_VERSION]:
                raise UnsupportedFeatureError("Archived timeline rows of another version are not supported.")
            yield rows
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError, MemoryError) as error:
        raise CorruptFileError("A file of the archived timeline is not a Parquet file of instants.") from error
