"""Use a ``pyarrow.compute.Expression`` as a filter, with Arrow's own semantics.

The expression is evaluated once on an empty batch of the schema, so an unknown column or a type error is raised before
any file is read. Arrow does not list the columns that an expression reads. So every column whose name occurs in its
text counts as read: possibly too many, never too few. References by position are refused, because a reader passes only
some of the columns.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.errors import InvalidQueryError
from hoodie_py.table.filter.predicate import ArrowFilter, Predicate

_MASK = "mask"


def from_expression(expression: pc.Expression, schema: pa.Schema) -> Predicate:
    """Wrap a boolean expression on the columns of a schema.

    Raises:
        InvalidQueryError: the expression names an unknown column, refers to a column by position, contains types that
            do not fit, or is not boolean.
    """
    text = str(expression)
    if "FieldPath(" in text:
        raise InvalidQueryError(
            f"The filter refers to a column by position: {text}.", hint="Use pyarrow.compute.field(name)."
        )
    columns = tuple(name for name in dict.fromkeys(schema.names) if name in text)
    node = ArrowFilter(expression, text, columns)
    repeated = [name for name in columns if schema.names.count(name) > 1]
    if repeated:
        raise InvalidQueryError(f"The filter's column {repeated[0]!r} is ambiguous: several columns have that name.")
    mask_type = evaluate_expression(node, pa.RecordBatch.from_pylist([], schema=schema)).type
    if not pa.types.is_boolean(mask_type):
        raise InvalidQueryError(f"A filter must be boolean, but {text} is of type {mask_type}.")
    return Predicate(node)


def evaluate_expression(node: ArrowFilter, batch: pa.RecordBatch) -> pa.Array:
    """Evaluate the expression for each row of a batch.

    Raises:
        InvalidQueryError: Arrow cannot evaluate it on these columns.
    """
    import pyarrow.dataset as ds

    columns = [name for name in node.columns if name in batch.schema.names]
    rows = pa.Table.from_batches([batch]).select(columns)
    # A dataset of no columns has no rows: one column of nulls keeps their number.
    if not columns:
        rows = pa.table({_MASK: pa.nulls(batch.num_rows)})
    try:
        answer = ds.dataset(rows).to_table(columns={_MASK: node.expression}, use_threads=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, pa.ArrowKeyError) as error:
        raise InvalidQueryError(f"Arrow cannot evaluate the filter {node.text}: {error}") from error
    return answer.column(_MASK).combine_chunks()
