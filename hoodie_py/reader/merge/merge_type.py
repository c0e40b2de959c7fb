"""How log rows find their base rows: the choice of a record buffer.

The rule: the same conditions in the same order as Hudi's DefaultFileGroupRecordBufferLoader and
StreamingFileGroupRecordBufferLoader.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from hoodie_py.options.read import MERGE_TYPE, SKIP_MERGE


class BufferKind(StrEnum):
    """How log rows find base rows, and in which order the result comes."""

    KEY = "key"
    POSITION = "position"
    SORTED = "sorted"
    UNMERGED = "unmerged"


def choose_buffer_kind(
    options: Mapping[str, str],
    *,
    streaming: bool = False,
    sort_output: bool = False,
    use_positions: bool = False,
    has_base_file: bool = False,
) -> BufferKind:
    """Return how log rows find base rows.

    Args:
        options: the user's reader options.
        streaming: whether the newer rows come from a writer, not from log files; they have no positions and always
            merge.
        sort_output: whether the result must be in key order.
        use_positions: whether rows may be matched by position.
        has_base_file: whether the file slice has a base file, to which positions refer.

    Raises:
        InvalidQueryError: an unknown merge type.
    """
    if not streaming and not needs_merge(options):
        return BufferKind.UNMERGED
    if sort_output:
        return BufferKind.SORTED
    if use_positions and has_base_file and not streaming:
        return BufferKind.POSITION
    return BufferKind.KEY


def needs_merge(options: Mapping[str, str]) -> bool:
    """Say whether log rows merge with base rows of their key (the default) or are appended to the base rows.

    Raises:
        InvalidQueryError: an unknown merge type.
    """
    return MERGE_TYPE.read(options) != SKIP_MERGE
