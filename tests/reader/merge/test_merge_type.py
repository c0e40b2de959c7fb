"""Names for the ways of merging."""

from __future__ import annotations

import pytest

from hoodie_py.errors import InvalidQueryError
from hoodie_py.formats.config.merge_config import MergeMode
from hoodie_py.reader.merge.merge_type import BufferKind, choose_buffer_kind, needs_merge
from tests.reader.merge_cases.merge_rules import MergeRule, merge_rule


def test_custom_does_not_look_at_the_partial_update_mode() -> None:
    assert merge_rule(MergeMode.CUSTOM, completes=True) is MergeRule.CUSTOM
    assert merge_rule(MergeMode.CUSTOM, completes=True, payloads=("a.B", "a.B")) is MergeRule.PAYLOAD


@pytest.mark.parametrize("mode", list(MergeMode))
def test_a_partial_block_decides_over_everything(mode: MergeMode) -> None:
    assert merge_rule(mode, completes=True, partial_block=True, payloads=("a.B", "a.B")) is MergeRule.KEEP_VALUES


def test_rows_of_a_write_always_merge() -> None:
    skip = {"hoodie.datasource.merge.type": "Skip_Merge"}
    assert choose_buffer_kind(skip) is BufferKind.UNMERGED
    assert choose_buffer_kind(skip, streaming=True) is BufferKind.KEY
    assert not needs_merge(skip)


def test_an_unknown_merge_type_is_an_error() -> None:
    with pytest.raises(InvalidQueryError, match="nonsense"):
        needs_merge({"hoodie.datasource.merge.type": "nonsense"})
