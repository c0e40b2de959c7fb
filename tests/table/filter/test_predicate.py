"""The tree: it travels small, it can be taken apart and joined, and it prints as SQL."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie_py.errors import InvalidQueryError
from hoodie_py.table.filter.as_predicate import as_predicate
from hoodie_py.table.filter.evaluate import evaluate
from hoodie_py.table.filter.predicate import Predicate, count_levels
from hoodie_py.table.filter.sql_parser import parse_sql
from tests.table.filter_examples import ANSWERED
from tests.table.filter_rows import SCHEMA, rows


@pytest.mark.parametrize("text", ANSWERED)
def test_a_predicate_survives_pickling(text: str) -> None:
    """A task carries its filter to a worker; it must stay small and equal."""
    predicate = parse_sql(text, SCHEMA)
    packed = pickle.dumps(predicate)
    assert len(packed) < 4096
    assert str(pickle.loads(packed)) == str(predicate)


def test_conjuncts_split_at_every_level_of_and() -> None:
    """Nested ANDs come apart in order."""
    predicate = parse_sql("(n32 = 1 and (bo and s = 'a')) and (n32 = 2 or bo)", SCHEMA)
    parts = predicate.conjuncts
    assert [str(part) for part in parts] == ["n32 = 1", "bo", "s = 'a'", "(n32 = 2) or bo"]


def test_between_is_two_conjuncts() -> None:
    """So that each bound can be used on its own for skipping."""
    assert [str(part) for part in parse_sql("n32 between 1 and 5", SCHEMA).conjuncts] == ["n32 >= 1", "n32 <= 5"]


def test_depth_counts_levels() -> None:
    """A literal is one level."""
    assert count_levels(parse_sql("true", SCHEMA).root) == 1
    assert count_levels(parse_sql("n32 = 1 and bo", SCHEMA).root) == 3


def test_as_predicate_takes_every_kind_of_filter() -> None:
    """Text, Arrow expressions and bound filters; anything else is an error, None is no filter."""
    predicate = as_predicate("n32 = 1", SCHEMA)
    assert isinstance(predicate, Predicate)
    assert as_predicate(predicate, SCHEMA) is predicate
    assert as_predicate(None, SCHEMA) is None
    expression = as_predicate(pc.field("n32") == 1, SCHEMA)
    assert expression is not None
    assert evaluate(expression, rows()).equals(evaluate(parse_sql("n32 = 1", SCHEMA), rows()))
    with pytest.raises(InvalidQueryError, match="unknown column 'n32'"):
        as_predicate(predicate, pa.schema([("a", pa.int32())]))
    with pytest.raises(InvalidQueryError, match="list"):
        as_predicate([("n32", "=", 1)], SCHEMA)
