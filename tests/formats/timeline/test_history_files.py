"""Files of the history: what is written is read back, and has Java's form."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie_py.errors import CorruptFileError, UnsupportedFeatureError
from hoodie_py.formats.timeline.archive import (
    ArchivedInstant,
    HistoryFile,
    parse_history_file_name,
    parse_history_manifest,
    parse_history_parquet,
    parse_manifest_name,
)
from hoodie_py.formats.timeline.history_files import (
    HISTORY_SCHEMA,
    encode_manifest,
    make_history_file_name,
    make_history_rows,
    make_manifest_name,
    read_history_batches,
    write_history,
)
from tests.formats.zipped_tables import meta_files

INSTANT = st.builds(
    ArchivedInstant,
    st.integers(1, 10**17).map(str),
    st.integers(1, 10**17).map(str),
    st.sampled_from(["commit", "clean"]),
    st.none() | st.binary(min_size=1, max_size=5),
    st.none() | st.binary(min_size=1, max_size=5),
)


def encode(*tables: pa.Table) -> bytes:
    sink = io.BytesIO()
    write_history(sink, tables)
    return sink.getvalue()


@given(st.lists(INSTANT, min_size=1, max_size=5))
@settings(max_examples=25)
def test_what_is_written_is_read(instants: list[ArchivedInstant]) -> None:
    data = encode(make_history_rows(instants))
    assert parse_history_parquet(data) == instants
    assert parse_history_parquet(encode(*read_history_batches(data), make_history_rows(instants))) == instants * 2


def test_the_form_is_javas() -> None:
    [java, *_] = [each for each in meta_files("archived_timeline_mor_v9") if each.name.endswith("_0.parquet")]
    theirs = pq.ParquetFile(io.BytesIO(java.data))
    ours = pq.ParquetFile(io.BytesIO(encode(make_history_rows(parse_history_parquet(java.data)))))
    assert ours.schema_arrow.equals(theirs.schema_arrow)
    assert ours.metadata.metadata == theirs.metadata.metadata
    kinds = [
        [
            (each.physical_type, str(each.logical_type), each.max_definition_level)
            for each in map(file.schema.column, range(6))
        ]
        for file in (ours, theirs)
    ]
    assert kinds[0] == kinds[1]
    assert ours.metadata.row_group(0).column(3).compression == "GZIP"


def test_names_and_manifests() -> None:
    name = make_history_file_name(["3", "1", "2"], 4)
    assert parse_history_file_name(name) == HistoryFile("1_3_4.parquet", "1", "3", 4)
    files = (HistoryFile(name, "1", "3", 4, 77),)
    assert parse_history_manifest(encode_manifest(files)) == files
    assert parse_manifest_name(make_manifest_name(5)) == 5


def test_damaged_files_and_newer_rows_are_errors() -> None:
    with pytest.raises(CorruptFileError):
        list(read_history_batches(b"PAR1"))
    row = {"instantTime": "1", "completionTime": "2", "action": "commit", "version": 2}
    with pytest.raises(UnsupportedFeatureError):
        list(read_history_batches(encode(pa.Table.from_pylist([row], HISTORY_SCHEMA))))
