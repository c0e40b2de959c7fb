"""Tables whose columns were altered with schema-on-read; what Java Hudi answers is in integration/test_corpus.py."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_py import CorruptFileError, HoodieTable
from tests.corpus import case_folder, corpus_names, load_case

Corpus = Callable[[str], Path]
NAMES = [name for name in corpus_names() if name.startswith("schema_on_read")]
FILTERS = {
    "schema_on_read_compacted_mor_v6": ["amount > 3", "qty = 'e2'", "price is null", "amount + 1 > 4 and ts < 3"],
    "schema_on_read_parquetlog_mor_v9": ["amount in (1, 22)", "qty is null", "price = 'dear'"],
    "schema_on_read_types_mor_v9": ["i4 = '1'", "l3 > '5'", "f3 > 1", "s1 < date'2000-01-01'", "dc1 = '5.50'"],
    "schema_on_read_nested_mor_v9": ["strct.aa > 1", "deeper.in.uu = 1", "strct.b is null"],
    "schema_on_read_cow_v8_reuse": ["price is null", "price = '0.0'"],
    "schema_on_read_mor_v9": ["amount > 3", "extra is null"],
}


def rows(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def expected(name: str, query: str) -> pa.Table:
    return pq.read_table(case_folder(name) / "expected" / f"{query}.parquet")


@pytest.mark.parametrize("name", NAMES)
def test_the_option_is_not_needed(corpus: Corpus, name: str) -> None:
    wanted = expected(name, "snapshot")
    found = HoodieTable.open(corpus(name)).scan(columns=wanted.column_names).to_arrow()
    assert len(rows(found)) == wanted.num_rows
    if pa.types.is_struct(wanted.schema.field(-1).type) or "m" in wanted.column_names:
        return  # maps compare by their pairs, which integration/test_corpus.py does
    assert [str(each) for each in found.to_pylist()] != []
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, wanted.to_pylist()))


@pytest.mark.parametrize(("name", "where"), [(name, each) for name, some in FILTERS.items() for each in some])
def test_filters_skip_no_wanted_row(corpus: Corpus, name: str, where: str) -> None:
    """Row groups are skipped by statistics of the stored columns only where these hold for the columns of the read."""
    table = HoodieTable.open(corpus(name))
    for query_type in ("snapshot", "read_optimized"):
        whole = table.scan(query_type=query_type).to_arrow()
        keep = table.scan(query_type=query_type, columns=["_hoodie_record_key"], filter=where).to_arrow()
        assert rows(table.scan(query_type=query_type, filter=where).to_arrow()) == [
            each
            for each in rows(whole)
            if any(f"'_hoodie_record_key': {key!r}," in each for key in keep["_hoodie_record_key"].to_pylist())
        ]


@pytest.mark.parametrize("name", NAMES)
def test_projections_and_time_travel(corpus: Corpus, name: str) -> None:
    table = HoodieTable.open(corpus(name))
    chooser = random.Random(name)
    for commit in load_case(name)["commits"]:
        if commit["action"] not in ("commit", "deltacommit"):
            continue
        whole = table.scan(as_of=commit["instant"]).to_arrow()
        columns = chooser.sample(whole.column_names, chooser.randint(0, len(whole.column_names)))
        some = table.scan(as_of=commit["instant"], columns=columns, batch_rows=1).to_arrow()
        assert rows(some) == rows(whole.select(columns))


@pytest.mark.parametrize("name", NAMES)
def test_tasks_are_small_and_travel(corpus: Corpus, name: str) -> None:
    scan = HoodieTable.open(corpus(name)).scan()
    packed = [pickle.dumps(task) for task in scan.tasks()]
    assert max(map(len, packed)) < 64 << 10
    batches = [batch for each in packed for batch in pickle.loads(each).to_batches()]
    assert rows(pa.Table.from_batches(batches)) == rows(scan.to_arrow())


def test_changes_show_columns_by_id(corpus: Corpus) -> None:
    table = HoodieTable.open(corpus("schema_on_read_cdc_cow_v9"))
    state: dict[str, Any] = {}
    for change in sorted(table.changes().to_arrow().to_pylist(), key=lambda each: each["ts_ms"]):
        before, after = (json.loads(change[side]) if change[side] else None for side in ("before", "after"))
        row = after or before
        assert {"amount", "price", "qty"} & row.keys()
        assert change["op"] != "u" or before["amount"] is not None
        if change["op"] == "d":
            del state[row["id"]]
        else:
            state[row["id"]] = row
    now = {each["id"]: each for each in table.scan().to_arrow().to_pylist()}
    assert state.keys() == now.keys()
    for key, row in state.items():
        for name in ("amount", "qty", "name", "ts"):  # Java rewrote price by name
            assert row.get(name) == now[key][name], (key, name)


def test_a_history_that_contradicts_the_files_is_an_error(corpus_copy: Corpus) -> None:
    root = corpus_copy("schema_on_read_mor_v9")
    newest = max((root / ".hoodie/.schema").glob("*_*.schemacommit"))
    newest.chmod(0o644)
    newest.write_text(newest.read_text().replace('"price"', '"old_name"').replace('"name":"name"', '"name":"was"'))
    with pytest.raises(CorruptFileError, match="'was'"):
        HoodieTable.open(root).scan(query_type="read_optimized").to_arrow()


def test_a_history_that_contradicts_the_newest_schema_is_an_error(corpus_copy: Corpus) -> None:
    root = corpus_copy("schema_on_read_mor_v9")
    newest = max((root / ".hoodie/.schema").glob("*_*.schemacommit"))
    history = json.loads(newest.read_text())
    newest.chmod(0o644)
    field = next(each for each in history["schemas"][-1]["fields"] if each["name"] == "qty")
    field["type"] = {"type": "record", "fields": [{"id": 99, "name": "x", "optional": True, "type": "int"}]}
    newest.write_text(json.dumps(history))
    with pytest.raises(CorruptFileError, match="amount"):
        HoodieTable.open(root).scan().to_arrow()
    newest.write_text(newest.read_text()[:-40])
    with pytest.raises(CorruptFileError) as caught:
        HoodieTable.open(root).scan().to_arrow()
    assert caught.value.where["path"].endswith(".schemacommit")
