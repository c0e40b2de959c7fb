"""What a reader may conclude from column statistics: bounds and null counts that hold whatever Java wrote them from.

Java 1.2.0 takes the statistics of base files from their Parquet footers, where some are missing, and then writes what
looks like statistics (Hudi ``ParquetUtils``, and ``Statistics`` of parquet-mr):

* Texts and bytes: a row group whose bounds have 4,096 bytes together has none. It counts as *all null*, and has no
  bounds. Row groups, and files of a partition, are merged without it, so bounds are those of the others only.
* Floats: a row group with a NaN has the bounds 0.0 and 0.0, which are merged like any others.
* Times stored as INT96 have none: *all null* in statistics of version 1.
* Integers and dates that are all null have the bounds 0 and 0.
* Decimals whose scale grew: the bounds of a partition put numbers of the old scale and of the new one together, as if
  they had one scale. Those of files have the scale of the file.

So bounds of texts count only if nothing is counted as null, or if the column is too small for a long value; bounds of
floats only if 0 is outside of them; bounds of decimals only in statistics of files. Statistics of log files are made
from the records and always hold.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_py.arrow.arrays import from_numpy, to_booleans, to_numbers
from hoodie_py.arrow.compute import call, take
from hoodie_py.formats.metadata_table.stat_values import unwrap_values

Mask = npt.NDArray[np.bool_]

_SMALL = 2048  # bytes of a column, in which two bounds of 4,096 bytes (parquet-mr's MAX_STATS_SIZE) cannot be


@dataclass(frozen=True, slots=True)
class TrustedRanges:
    """What holds for the values of one column in files, or in partitions, one entry for each.

    Attributes:
        least, greatest: bounds in the column's type, null where none is known.
        no_nulls: no value is null.
        all_null: each value is null; also where there are no values.
        no_rows: there are no values. So it is for a log file that only deletes.
    """

    least: pa.Array
    greatest: pa.Array
    no_nulls: Mask
    all_null: Mask
    no_rows: Mask


def read_trusted_ranges(
    statistics: pa.Array, type_: pa.DataType, *, of_partitions: bool, millis: bool = False
) -> TrustedRanges:
    """Return what holds by statistics (``ColumnStatsMetadata``) of one column of a type.

    ``of_partitions``: they are of partitions, not of files. ``millis``: see ``unwrap_values``. Deleted statistics and
    nulls say nothing.
    """
    fields = dict(zip((field.name for field in statistics.type), statistics.flatten(), strict=True))
    says = to_booleans(call("is_valid", statistics)) & ~to_booleans(fields["isDeleted"])
    values, nulls = to_numbers(fields["valueCount"], -1), to_numbers(fields["nullCount"], -1)
    kinds = fields.get("valueType")
    least, greatest = (unwrap_values(fields[name], kinds, type_, millis=millis) for name in ("minValue", "maxValue"))
    unbounded = to_booleans(call("is_null", fields["minValue"]))
    no_nulls, all_null, no_rows = says & (nulls == 0), says & (nulls >= values) & (values >= 0), says & (values == 0)
    holds = says & ~all_null
    exact = np.zeros(len(statistics), np.bool_) if of_partitions else _are_logs(fields["fileName"])
    if pa.types.is_decimal(type_):
        holds &= not of_partitions
    if _may_be_long(type_):
        small = to_numbers(fields["totalUncompressedSize"], _SMALL) < _SMALL
        full = exact | small | (nulls == 0)
        holds &= full
        all_null &= full
    if pa.types.is_timestamp(type_):
        all_null &= exact | ~unbounded | _name_kinds(kinds, len(statistics))
    if pa.types.is_floating(type_):
        low, high = to_numbers(least.values, 0), to_numbers(greatest.values, 0)
        holds &= exact | (low > 0) | (high < 0)
    return TrustedRanges(_keep(least.values, holds), _keep(greatest.values, holds), no_nulls, all_null, no_rows)


def count_nulls_too(statistics: pa.Array) -> pa.Array:
    """Return statistics of an expression index as ``column_stats`` has them.

    Java counts only those values of an expression that are not null, and where there are none it has no bounds (Hudi
    ``ExpressionIndexRecordGenerationUtils``).
    """
    fields = dict(zip((field.name for field in statistics.type), statistics.flatten(), strict=True))
    values = call("add", fields["valueCount"], fields["nullCount"])
    all_null = call("is_null", fields["minValue"])
    fields["valueCount"] = call("if_else", all_null, fields["nullCount"], values)
    return pa.StructArray.from_arrays(
        list(fields.values()), fields=list(statistics.type), mask=call("is_null", statistics)
    )


def _may_be_long(type_: pa.DataType) -> bool:
    kinds = pa.types
    return any(test(type_) for test in (kinds.is_string, kinds.is_large_string, kinds.is_binary, kinds.is_large_binary))


def _are_logs(names: pa.Array) -> Mask:
    """Say which names are those of log files."""
    import pyarrow.compute as pc

    return to_booleans(pc.starts_with(names, "."))


def _name_kinds(kinds: pa.Array | None, length: int) -> Mask:
    """Say which statistics name the kind of their values."""
    return np.zeros(length, np.bool_) if kinds is None else to_booleans(call("is_valid", kinds))


def _keep(values: pa.Array, mask: Mask) -> pa.Array:
    """Return values, null where the mask is not set."""
    return values if mask.all() else take(values, from_numpy(np.arange(len(values)), ~mask))
