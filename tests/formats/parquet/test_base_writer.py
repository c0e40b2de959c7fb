from __future__ import annotations

import gc
import io
import json
import zipfile
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import CorruptFileError, InvalidQueryError, InvalidTableError
from hoodie_py.formats.avro.data_blocks import AvroSchema
from hoodie_py.formats.parquet import CODECS
from hoodie_py.formats.parquet.base_writer import BaseFileWriter, WrittenFile
from hoodie_py.formats.parquet.bloom import BloomSettings
from hoodie_py.formats.parquet.decoder import read_file_schema
from tests.corpus import case_folder
from tests.formats.blooms import build_bloom
from tests.formats.spark_rows import to_schema

SMALL = BloomSettings(100, 0.01, 100)


def avro(**fields: Any) -> str:
    declared = [{"name": name, "type": kind, "default": None} for name, kind in fields.items()]
    return json.dumps({"type": "record", "name": "r", "fields": declared})


TEXT, LONG = ["null", "string"], ["null", "long"]
KEYED = avro(_hoodie_record_key=TEXT, n=LONG)
KEYED_ARROW = AvroSchema.parse(KEYED).arrow


def keyed(start: int, stop: int) -> pa.RecordBatch:
    keys = pa.array([f"key-{i:06}" for i in range(start, stop)])
    return pa.RecordBatch.from_arrays([keys, pa.array(range(start, stop), pa.int64())], schema=KEYED_ARROW)


def write(*batches: pa.RecordBatch, schema: str = KEYED, **settings: Any) -> tuple[WrittenFile, pq.ParquetFile]:
    sink = io.BytesIO()
    writer = BaseFileWriter(sink, AvroSchema.parse(schema).arrow, schema, **settings)
    for batch in batches:
        writer.write(batch)
    written = writer.close()
    assert written.size == len(sink.getvalue())
    return written, pq.ParquetFile(pa.BufferReader(sink.getvalue()))


def footer(file: pq.ParquetFile) -> dict[str, str]:
    return {key.decode(): value.decode() for key, value in file.metadata.metadata.items()}


def group_rows(file: pq.ParquetFile) -> list[int]:
    return [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]


@given(st.lists(st.integers(0, 40), max_size=6), st.integers(1, 50))
def test_rows_come_back_in_order_and_groups_have_their_size(sizes: list[int], most: int) -> None:
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    batches = [keyed(end - size, end) for size, end in zip(sizes, ends, strict=True)]
    written, file = write(*batches, row_group_rows=most)
    total = sum(sizes)
    groups = [file.read_row_group(i) for i in range(file.num_row_groups)]
    assert pa.concat_tables([KEYED_ARROW.empty_table(), *groups]) == pa.Table.from_batches(batches, KEYED_ARROW)
    assert group_rows(file) == [most] * (total // most) + [total % most] * (total % most > 0)
    assert (written.rows, footer(file).get("hoodie_min_record_key")) == (total, "key-000000" if total else None)


def test_the_footer_has_the_keys_of_hudi() -> None:
    batches = [keyed(50, 90), keyed(0, 50)]
    _, file = write(*batches, bloom=SMALL)
    keys = pa.chunked_array([batch.column(0) for batch in batches])
    assert footer(file) == {
        "org.apache.hudi.bloomfilter": build_bloom(keys, SMALL).to_text(),
        "hoodie_bloom_filter_type_code": "DYNAMIC_V0",
        "hoodie_min_record_key": "key-000000",
        "hoodie_max_record_key": "key-000089",
        "parquet.avro.schema": KEYED,
        "org.apache.spark.version": "3.5.0",
    }


def test_simple_filters_have_no_type_code_and_files_without_keys_no_filter() -> None:
    _, file = write(keyed(0, 3), bloom=BloomSettings(100, 0.01, 100, dynamic=False))
    assert footer(file).keys() >= {"org.apache.hudi.bloomfilter"}
    assert "hoodie_bloom_filter_type_code" not in footer(file)
    other = avro(n=LONG)
    _, file = write(keyed(0, 3).select(["n"]), schema=other, bloom=SMALL)
    assert footer(file).keys() == {"parquet.avro.schema", "org.apache.spark.version"}


def test_a_file_without_rows_is_a_file() -> None:
    written, file = write(bloom=SMALL)
    assert (written.rows, file.metadata.num_rows) == (0, 0)
    assert "hoodie_min_record_key" not in footer(file)
    assert "org.apache.hudi.bloomfilter" in footer(file)


def test_pages_and_dictionaries_are_as_asked() -> None:
    flags = pa.array(["same"] * 20_000)
    rows = pa.RecordBatch.from_arrays([flags, pa.array(range(20_000), pa.int64())], schema=KEYED_ARROW)

    def measure(**settings: Any) -> tuple[int, bool]:
        _, file = write(rows, codec="uncompressed", **settings)
        group = file.metadata.row_group(0)
        return group.column(1).total_compressed_size, group.column(0).has_dictionary_page

    whole, has_dictionary = measure()
    assert has_dictionary
    assert measure(dictionary=False) == (whole, False)
    assert measure(page_bytes=4096)[0] > whole, "each page has a header"


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_and_its_statistics(codec: str) -> None:
    _, file = write(keyed(0, 100), codec=codec, level=3 if CODECS[codec] else None)
    chunk = file.metadata.row_group(0).column(1)
    assert chunk.compression == codec.upper()
    assert (chunk.statistics.min, chunk.statistics.max, chunk.statistics.null_count) == (0, 99, 0)
    assert chunk.has_column_index


def test_row_groups_end_at_their_size_in_the_file() -> None:
    schema = avro(t=TEXT)
    texts = [f"{i:08}" * 16 for i in range(40_000)]
    batches = pa.RecordBatch.from_pydict({"t": texts}).slice(0), pa.RecordBatch.from_pydict({"t": texts})
    _, file = write(*batches, schema=schema, codec="uncompressed", row_group_bytes=1 << 20)
    sizes = [file.metadata.row_group(i).total_byte_size for i in range(file.num_row_groups)]
    assert len(sizes) > 8
    assert all(0.8 * (1 << 20) < size < 1.2 * (1 << 20) for size in sizes[1:-1])


def test_repeating_columns_have_a_dictionary_and_others_none() -> None:
    schema = avro(same=TEXT, own=TEXT, l=["null", {"type": "array", "items": TEXT}])
    rows = [{"same": "x", "own": str(i), "l": ["y"]} for i in range(100)]
    _, file = write(pa.RecordBatch.from_pylist(rows), schema=schema)
    group = file.metadata.row_group(0)
    assert [group.column(i).has_dictionary_page for i in range(3)] == [True, False, True]


def test_columns_are_taken_by_name() -> None:
    sink = io.BytesIO()
    batch = keyed(0, 3).select(["n", "_hoodie_record_key"])
    writer = BaseFileWriter(sink, batch.schema, KEYED)
    writer.write(batch)
    writer.close()
    assert pq.read_table(sink) == pa.Table.from_batches([keyed(0, 3)])


def java_file(case: str, ending: str) -> pq.ParquetFile:
    with zipfile.ZipFile(case_folder(case) / "table.zip") as archive:
        (path,) = [path for path in archive.namelist() if path.endswith(ending)]
        return pq.ParquetFile(io.BytesIO(archive.read(path)))


def test_all_types_come_back_as_java_wrote_them() -> None:
    java = java_file("types_mor_v9", "_20261121095206790.parquet")
    schema = read_file_schema(java.metadata)
    sink = io.BytesIO()
    writer = BaseFileWriter(sink, schema, footer(java)["parquet.avro.schema"], row_group_rows=3)
    for batch in java.iter_batches():
        writer.write(to_schema(batch, schema))
    writer.close()
    mine = pq.ParquetFile(sink)
    assert mine.read().to_pylist() == java.read().to_pylist()
    assert read_file_schema(mine.metadata) == AvroSchema.parse(footer(java)["parquet.avro.schema"]).arrow
    keys = ("hoodie_min_record_key", "hoodie_max_record_key")
    assert [footer(mine)[key] for key in keys] == [footer(java)[key] for key in keys]
    assert [column(mine, i) for i in range(len(mine.schema))] == [column(java, i) for i in range(len(java.schema))]
    assert "ARROW:schema" not in footer(mine)


def column(file: pq.ParquetFile, i: int) -> tuple[Any, ...]:
    """A leaf column as it is stored, with lists of two levels, as Java's Avro writer has them (Spark's has not)."""
    leaf = file.schema.column(i)
    path = leaf.path.replace(".list.element", ".array")
    levels = leaf.max_definition_level - leaf.path.count(".list.element")
    return path, leaf.physical_type, str(leaf.logical_type), leaf.length, levels, leaf.max_repetition_level


@pytest.mark.parametrize(
    "settings",
    [{"codec": "lzo"}, {"codec": "snappy", "level": 1}, {"codec": "zstd", "level": 99}, {"row_group_rows": 0},
     {"row_group_bytes": 0}],
)  # fmt: skip
def test_settings_without_sense_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidQueryError):
        write(**settings)


def test_other_columns_are_refused_before_anything_is_written() -> None:
    with pytest.raises(InvalidTableError):
        BaseFileWriter(io.BytesIO(), pa.schema([("n", pa.int64())]), KEYED)
    with pytest.raises(CorruptFileError):
        write(pa.RecordBatch.from_pylist([{"_hoodie_record_key": None, "n": 1}], KEYED_ARROW))


class FullDisk(io.BytesIO):
    def write(self, data: Any) -> int:
        if self.tell() + len(data) > 3000:
            raise OSError(28, "No space left on device")
        return super().write(data)


def test_a_failure_of_the_sink_comes_through_and_leaves_no_footer() -> None:
    sink = FullDisk()
    writer = BaseFileWriter(sink, KEYED_ARROW, KEYED, row_group_rows=10)
    with pytest.raises(OSError, match="No space left"):
        writer.write(keyed(0, 1000))
    sink.seek(0)
    before = sink.getvalue()
    del writer
    gc.collect()
    assert sink.getvalue() == before


def test_a_writer_that_is_dropped_leaves_no_footer() -> None:
    sink = io.BytesIO()
    writer = BaseFileWriter(sink, KEYED_ARROW, KEYED, row_group_rows=10)
    writer.write(keyed(0, 25))
    written = sink.getvalue()
    assert written.startswith(b"PAR1")
    del writer
    gc.collect()
    assert sink.getvalue() == written
    with pytest.raises(pa.ArrowInvalid):
        pq.ParquetFile(io.BytesIO(written))
