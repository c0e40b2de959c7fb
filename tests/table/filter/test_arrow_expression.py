"""Arrow expressions as filters: columns are found, mistakes show before reading."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie_py.errors import InvalidQueryError
from hoodie_py.table.filter.arrow_expression import from_expression
from hoodie_py.table.filter.evaluate import evaluate
from tests.table.filter_rows import SCHEMA, rows


@pytest.mark.parametrize(
    ("expression", "needed"),
    [
        (pc.field("n32") > 1, {"n32"}),
        ((pc.field("a b") == 1) & pc.field("s").isin(["a", "b"]), {"a b", "s"}),
        (pc.field("st", "b") == "x", {"st"}),
        (pc.field("d").is_nan(), {"d"}),
        (pc.starts_with(pc.field("s"), pattern="a"), {"s"}),
        (pc.scalar(True), set()),
    ],
)
def test_mask_is_that_of_arrow(expression: pc.Expression, needed: set[str]) -> None:
    """The rows kept are those that Table.filter keeps, with only the needed columns at hand."""
    batch = rows()
    predicate = pickle.loads(pickle.dumps(from_expression(expression, SCHEMA)))
    assert needed <= predicate.columns
    mask = evaluate(
        predicate, batch.select([name for name in SCHEMA.names if name in predicate.columns or name == "id"])
    )
    kept = pa.Table.from_batches([batch]).filter(expression)["id"].to_pylist()
    assert pc.filter(batch["id"], mask).to_pylist() == kept


@pytest.mark.parametrize(
    "expression",
    [pc.field("nope") > 1, pc.field("st", "nope") == 1, pc.field("s") > 1, pc.field("n32") + 1, pc.field(0) == 1],
)
def test_mistakes_are_refused_before_reading(expression: pc.Expression) -> None:
    """Unknown columns, types that do not fit, values that are no condition, positions."""
    with pytest.raises(InvalidQueryError):
        from_expression(expression, SCHEMA)


def test_an_empty_batch_has_an_empty_mask() -> None:
    """No rows, no answers, still boolean."""
    mask = evaluate(from_expression(pc.field("n32") > 1, SCHEMA), rows().slice(0, 0))
    assert (len(mask), mask.type) == (0, pa.bool_())
