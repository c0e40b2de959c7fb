"""Sums over a table's rows that tell a right answer from a wrong one, as Java Hudi made them (``*.expect.json``)."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Sums = dict[str, int | Decimal]


@dataclass(frozen=True)
class Check:
    """A sum: the column it needs, and its value for one batch."""

    column: str
    of: Callable[[pa.Array], int | Decimal]


def _total(values: pa.Array) -> Any:
    return pc.sum(values).as_py() or 0


def _crc(values: pa.Array) -> int:
    return sum(zlib.crc32(text.encode()) for text in values.drop_null().to_pylist())


def _since(start: int) -> Callable[[pa.Array], int]:
    return lambda values: int(_total(pc.subtract(values, start)))


def _spark_sizes(values: pa.Array) -> int:
    return int(_total(pc.list_value_length(values))) - int(values.null_count)  # Spark's size(null) is -1


def _of_map(key: str) -> Callable[[pa.Array], int]:
    return lambda values: int(_total(pc.map_lookup(values, key, "first")))


def _of_struct(name: str) -> Callable[[pa.Array], int]:
    return lambda values: int(_total(pc.struct_field(values, name)))


CHECKS: Mapping[str, Mapping[str, Check]] = {
    "mor_small": {
        "si1": Check("i1", _total),
        "sl2": Check("l2", _total),
        "samt": Check("amt", _total),
        "cname": Check("name", _crc),
        "sts": Check("ts", _since(1_700_000_000_000)),
        "ntags": Check("tags", _spark_sizes),
    },
    "mor_late": {
        "sts": Check("ts", _total),
        "si1": Check("i1", _total),
        "sl2": Check("l2", _total),
        "samt": Check("amt", _total),
        "sbig": Check("big", _total),
        "cname": Check("name", _crc),
        "ntags": Check("tags", lambda values: _total(pc.list_value_length(values))),
        "sma": Check("m", _of_map("a")),
        "ssa": Check("st", _of_struct("a")),
        "lraw": Check("raw", lambda values: _total(pc.binary_length(values))),
    },
    "history_mor": {"sts": Check("ts", _total)},
    "history_cow": {"sts": Check("ts", _total)},
    "history_cdc": {"sts": Check("ts", _total)},
}


def sums_of(table: str, batches: Iterable[pa.RecordBatch]) -> Sums:
    """Return the rows (``n``) and every sum whose column the batches have."""
    sums: Sums = defaultdict(int)
    for batch in batches:
        sums["n"] += batch.num_rows
        for name, check in CHECKS[table].items():
            if check.column in batch.schema.names:
                sums[name] += check.of(batch.column(check.column))
    return dict(sums)


def differences(found: Mapping[str, int | Decimal], expected: Mapping[str, int | Decimal]) -> list[str]:
    """Say which sums are not as expected."""
    return [f"{name} is {found[name]}, not {expected[name]}" for name in sorted(found) if found[name] != expected[name]]
