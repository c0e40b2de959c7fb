"""Row groups that a filter leaves out: certain to hold nothing, and most of them where keys are in no order."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.files import TableFiles
from hoodie_py.formats.names import METADATA_BOOTSTRAP_INSTANT, RECORD_KEY_FIELD
from hoodie_py.formats.parquet.bloom import BloomSettings
from hoodie_py.formats.parquet.key_range import BLOOM_KEY
from hoodie_py.reader.base.base_file import BaseFileReader
from hoodie_py.reader.file_slice import BaseFile, SourceFile
from hoodie_py.table.filter.predicate import Predicate
from hoodie_py.table.filter.row_groups import choose_row_groups
from hoodie_py.table.filter.sql_parser import parse_sql
from tests.bootstrap_pair import SCHEMA as PAIR_SCHEMA
from tests.bootstrap_pair import Pair, make_pair
from tests.formats.blooms import build_bloom

ROWS, GROUP = 400, 40
SCHEMA = pa.schema([(RECORD_KEY_FIELD, pa.string()), ("small", pa.int32()), ("wide", pa.string())])
KEYS = random.Random(5).sample([f"key-{number:03}" for number in range(ROWS)], ROWS)
Opened = Callable[..., BaseFileReader]


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    """``opened(small=..., bloom=keys)``: a base file with ten row groups, its keys in no order."""

    def make(small: list[int | None] | None = None, bloom: list[str] | None = None) -> BaseFileReader:
        columns = [KEYS, small or list(range(ROWS)), [f"{number:0200}" for number in range(ROWS)]]
        rows = pa.Table.from_arrays([pa.array(each, kind) for each, kind in zip(columns, SCHEMA.types, strict=True)],
                                    schema=SCHEMA)  # fmt: skip
        if bloom is not None:
            text = build_bloom(pa.array(bloom), BloomSettings(400, 1e-9, 400, dynamic=False)).to_text()
            rows = rows.replace_schema_metadata({BLOOM_KEY: text})
        pq.write_table(rows, tmp_path / "f.parquet", row_group_size=GROUP, use_dictionary=False, compression="none")
        size = (tmp_path / "f.parquet").stat().st_size
        return BaseFileReader(TableFiles.open(tmp_path), BaseFile("f.parquet", size, "001", "f"))

    return make


def wanted(
    base: BaseFileReader, text: str, columns: set[str] | None = None, unstored: tuple[str, ...] = ()
) -> list[int]:
    predicate: Predicate = parse_sql(text, SCHEMA)
    return choose_row_groups(base, predicate, SCHEMA, columns or set(SCHEMA.names), unstored, 16)


def test_bootstrapped_files_have_the_row_groups_of_their_source_and_the_keys_of_their_skeleton(tmp_path: Path) -> None:
    base = make_pair(tmp_path, rows=20, source_group=5).open()

    def choose(text: str) -> list[int]:
        return choose_row_groups(base, parse_sql(text, PAIR_SCHEMA), PAIR_SCHEMA, PAIR_SCHEMA.names, (), 16)

    assert choose("id > 12") == [2, 3]
    assert choose("id = 3") == [0]
    assert choose(f"{RECORD_KEY_FIELD} = '{RECORD_KEY_FIELD}-7'") == [1]
    assert choose("_hoodie_commit_time = '3'") == []
    skeleton = tmp_path / "table" / base.path
    text = build_bloom(pa.array(["other"]), BloomSettings(400, 1e-9, 400, dynamic=False)).to_text()
    rows = pq.read_table(skeleton, memory_map=False).replace_schema_metadata({BLOOM_KEY: text})
    pq.write_table(rows, skeleton)
    base = make_pair_again(tmp_path)
    assert choose(f"{RECORD_KEY_FIELD} = '{RECORD_KEY_FIELD}-7'") == []


def make_pair_again(root: Path) -> BaseFileReader:
    """Open the files that ``make_pair`` wrote."""
    (path,) = (root / "table").glob("*.parquet")
    source = SourceFile(str(root / "source"), "x.parquet", None)
    base = BaseFile(path.name, path.stat().st_size, METADATA_BOOTSTRAP_INSTANT, "a-0", source)
    return Pair(root, base).open()


def test_one_key_wants_one_row_group(opened: Opened) -> None:
    base = opened()
    for place in (0, 39, 40, 399):
        assert wanted(base, f"{RECORD_KEY_FIELD} = '{KEYS[place]}'") == [place // GROUP]
        assert wanted(base, f"'{KEYS[place]}' <=> {RECORD_KEY_FIELD} and wide > ''") == [place // GROUP]
    assert wanted(base, f"{RECORD_KEY_FIELD} in ('{KEYS[3]}', null, '{KEYS[390]}')") == [0, 9]
    assert wanted(base, f"{RECORD_KEY_FIELD} = 'key-1234'") == []


def test_a_bloom_filter_leaves_a_file_out(opened: Opened) -> None:
    assert wanted(opened(bloom=KEYS), f"{RECORD_KEY_FIELD} = 'key-1234'", {RECORD_KEY_FIELD}) == []
    assert wanted(opened(bloom=KEYS), f"{RECORD_KEY_FIELD} = '{KEYS[3]}'", {RECORD_KEY_FIELD}) != []
    without = wanted(opened(), f"{RECORD_KEY_FIELD} = 'key-1234'", {RECORD_KEY_FIELD})
    assert without  # the column alone is all there is to read
    assert wanted(opened(bloom=["other"]), f"{RECORD_KEY_FIELD} = '{KEYS[3]}'") == []  # so it is asked
    assert wanted(opened(bloom=["other"]), f"{RECORD_KEY_FIELD} = '{KEYS[3]}' or small = 3") != []
    assert wanted(opened(bloom=["other"]), f"{RECORD_KEY_FIELD} = '{KEYS[3]}'", None, (RECORD_KEY_FIELD,)) == list(
        range(10)
    )


def test_values_that_are_everywhere_are_not_looked_for_long(opened: Opened) -> None:
    base = opened(small=[number % 7 for number in range(ROWS)])
    looked: list[int] = []
    read = base.read_batches
    base.read_batches = lambda *given, **named: (looked.append(given[2][0]), read(*given, **named))[1]  # type: ignore[method-assign]
    assert wanted(base, "small = 3") == list(range(10))
    assert looked == [0, 1]


def test_a_damaged_bloom_filter_is_an_error(opened: Opened, tmp_path: Path) -> None:
    from hoodie_py.errors import CorruptFileError

    opened()
    rows = pq.read_table(tmp_path / "f.parquet").replace_schema_metadata({BLOOM_KEY: "not base 64!"})
    pq.write_table(rows, tmp_path / "g.parquet")
    base = BaseFileReader(TableFiles.open(tmp_path), BaseFile("g.parquet", 0, "001", "g"))
    with pytest.raises(CorruptFileError, match="bloom"):
        wanted(base, f"{RECORD_KEY_FIELD} = '{KEYS[0]}'")


@given(
    st.lists(st.none() | st.integers(0, 5), min_size=ROWS, max_size=ROWS),
    st.sampled_from(["small = 3", "small in (2, null)", "small <=> 1", "not small = 3", "small = 1 and wide < '1'",
                     "small = 1 or small is null", "small in (1) and small = 4", "small <=> null"]),
)  # fmt: skip
def test_no_row_group_with_a_wanted_row_is_left_out(
    tmp_path_factory: pytest.TempPathFactory, small: list[int | None], text: str
) -> None:
    from hoodie_py.table.filter.evaluate import evaluate

    folder = tmp_path_factory.mktemp("rows")
    columns = [KEYS, sorted(small, key=lambda each: (each is None, each)), ["w" * 50] * ROWS]
    rows = pa.RecordBatch.from_arrays([pa.array(each, kind) for each, kind in zip(columns, SCHEMA.types, strict=True)],
                                      schema=SCHEMA)  # fmt: skip
    pq.write_table(pa.Table.from_batches([rows]), folder / "f.parquet", row_group_size=GROUP)
    base = BaseFileReader(TableFiles.open(folder), BaseFile("f.parquet", 0, "001", "f"))
    passing = evaluate(parse_sql(text, SCHEMA), rows).to_pylist()
    needed = {place // GROUP for place, passes in enumerate(passing) if passes}
    assert needed <= set(wanted(base, text))
