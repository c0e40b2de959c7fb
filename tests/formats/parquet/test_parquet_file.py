"""An open Parquet file, beside pyarrow's own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_py.formats.parquet.parquet_file import ParquetFile
from tests.arrow_memory import watched

ROWS = 1000
TABLE = pa.table(
    {
        "a": range(ROWS),
        "a.b": [f"{i}" for i in range(ROWS)],
        "s": [{"a": i, "b": [f"x{i}"] * (i % 3)} for i in range(ROWS)],
        "few": ["one", "two"] * (ROWS // 2),
    }
)


def stored(row_group_size: int = 300) -> pa.BufferReader:
    sink = pa.BufferOutputStream()
    pq.write_table(TABLE, sink, row_group_size=row_group_size)
    return pa.BufferReader(sink.getvalue())


@pytest.mark.smoke
@pytest.mark.parametrize("columns", [["a"], ["a.b"], ["s", "a"], ["few", "absent"], TABLE.column_names])
def test_top_level_columns_are_read_in_the_order_of_the_file(columns: list[str]) -> None:
    file = ParquetFile(stored())
    wanted = TABLE.select([name for name in TABLE.column_names if name in columns])
    assert file.metadata.num_rows == ROWS
    assert file.schema_arrow.names == TABLE.column_names
    assert file.read(columns).equals(wanted)
    assert pa.Table.from_batches(file.iter_batches(77, columns=columns)).equals(wanted)


def test_row_groups_are_chosen_by_number() -> None:
    batches = ParquetFile(stored()).iter_batches(ROWS, columns=["a"], row_groups=[3, 1])
    found = pa.Table.from_batches(batches).column("a").to_pylist()
    assert found == [*range(900, 1000), *range(300, 600)]


def test_columns_may_come_as_dictionaries() -> None:
    source = stored()
    metadata = ParquetFile(source).metadata
    at = [metadata.schema.column(i).path for i in range(metadata.num_columns)].index("few")
    (batch,) = ParquetFile(source, metadata=metadata, read_dictionary=[at]).iter_batches(
        ROWS, columns=["few"], row_groups=[0]
    )
    assert isinstance(batch.column(0), pa.DictionaryArray)
    assert batch.column(0).to_pylist() == TABLE.column("few").to_pylist()[:300]


def test_the_last_batch_and_its_pages_are_let_go_of_with_the_batch() -> None:
    source = stored(ROWS)
    allocated = watched()
    batches = ParquetFile(source).iter_batches(ROWS, columns=TABLE.column_names)
    batch = next(batches)
    held = allocated()
    assert held >= batch.nbytes
    del batch
    assert allocated() < held // 20
    assert next(batches, None) is None


def test_no_batch_is_held_here_while_another_is_wanted() -> None:
    batches = ParquetFile(stored(ROWS)).iter_batches(100, columns=["a"])
    references = sys.getrefcount(next(batches))
    assert references == 1  # that of the call


def test_bytes_that_are_no_parquet_file_are_arrows_error() -> None:
    with pytest.raises(pa.ArrowInvalid):
        ParquetFile(pa.BufferReader(b"PAR1 nothing PAR1"))


@pytest.mark.parametrize("name", [b"few", b"element"])
def test_names_that_are_not_utf_8_are_an_error_when_the_file_is_opened(name: bytes) -> None:
    whole = stored().read_buffer().to_pybytes()
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    damaged = whole[:footer] + whole[footer:].replace(name, b"\xe9" + name[1:])
    with pytest.raises(ValueError, match="utf-8"):
        ParquetFile(pa.BufferReader(damaged))


def test_the_class_is_found_where_pyarrow_has_it_elsewhere(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "t.parquet")
    code = """
import sys
import pyarrow, pyarrow.parquet
del pyarrow._parquet.ParquetReader
from hoodie_py.formats.parquet.parquet_file import ParquetFile
print(ParquetFile(pyarrow.OSFile(sys.argv[1])).metadata.num_rows)
"""
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "t.parquet")], capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == [str(ROWS)]


WIDE = pa.table({f"c{i}": [None if (i * row) % 7 == 3 else f"{i}-{row}" for row in range(50)] for i in range(40)})


@pytest.mark.parametrize("columns", [["c3"], WIDE.column_names[:8], WIDE.column_names[5:22], WIDE.column_names, []])
def test_a_row_group_is_read_some_columns_at_a_time(columns: list[str]) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(WIDE, sink, row_group_size=30)
    file = ParquetFile(pa.BufferReader(sink.getvalue()))
    for group, wanted in enumerate((WIDE.slice(0, 30), WIDE.slice(30))):
        batch = file.read_row_group(group, columns)
        if columns:
            assert pa.Table.from_batches([batch]).equals(wanted.select(columns))
        else:
            assert batch is None


def test_a_row_group_that_does_not_come_in_one_batch_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    file = ParquetFile(stored())
    assert file.read_row_group(3, TABLE.column_names).num_rows == 100
    real = ParquetFile.iter_batches
    monkeypatch.setattr(ParquetFile, "iter_batches", lambda self, rows, **named: real(self, rows - 1, **named))
    assert file.read_row_group(3, TABLE.column_names) is None
