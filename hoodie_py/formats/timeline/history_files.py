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
from hoodie_py.formats.timeline import archive
from hoodie_py.formats.timeline.archive import ArchivedInstant, HistoryFile

_TYPES = {"string": pa.string(), "bytes": pa.binary(), "int": pa.int32()}
HISTORY_SCHEMA = pa.schema(
    [pa.field(each.name, _TYPES[each.kind.avro], nullable=each.null) for each in archive.HISTORY_ROW.fields]
)
_ROWS = 256
_FOOTER = {"writer.model.name": "avro", "parquet.avro.schema": archive.HISTORY_ROW.java_text}


def make_history_file_name(times: Sequence[str], level: int) -> str:
    """Return the name of a history file by the request times of its instants."""
    return f"{min(times)}_{max(times)}_{level}.parquet"


def make_manifest_name(number: int) -> str:
    """Return the name of a manifest; a greater number is newer."""
    return f"manifest_{number}"


def encode_manifest(files: Iterable[HistoryFile]) -> bytes:
    """Encode a manifest."""
    listed = [archive.LISTED_FILE.write(each) for each in files]
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
    return pa.Table.from_pylist([archive.HISTORY_ROW.write(each) for each in instants], HISTORY_SCHEMA)


def read_history_batches(data: bytes) -> Iterator[pa.Table]:
    """Yield the rows of a history file, some at a time.

    Raises:
        CorruptFileError: not Parquet, or missing columns.
        UnsupportedFeatureError: a row version other than 1.
    """
    file = archive.open_history(data, HISTORY_SCHEMA.names)
    try:
        for batch in file.iter_batches(_ROWS, columns=HISTORY_SCHEMA.names):
            rows = pa.Table.from_batches([batch]).select(HISTORY_SCHEMA.names).cast(HISTORY_SCHEMA)
            if rows["version"].unique().to_pylist() != [archive.HISTORY_ROW_VERSION]:
                raise UnsupportedFeatureError("Archived timeline rows of another version are not supported.")
            yield rows
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError, MemoryError) as error:
        raise CorruptFileError("A file of the archived timeline is not a Parquet file of instants.") from error
