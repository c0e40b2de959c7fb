"""How rows find each other: choices by configuration, in the order Hudi makes them.

Hudi's record buffer loaders DefaultFileGroupRecordBufferLoader and StreamingFileGroupRecordBufferLoader.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from hoodie_py.options.read import MERGE_TYPE, SKIP_MERGE


class BufferKind(StrEnum):
    """How log rows find base rows and in what order the result comes."""

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
        streaming: whether a writer's rows take the place of log files; they have no positions and always merge.
        sort_output: whether the result has to come in key order.
        use_positions: whether positions are wanted.
        has_base_file: whether there is a base file that positions can be about.

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
    """Say whether log rows merge with what they meet (the default) or simply follow the base rows.

    Raises:
        InvalidQueryError: an unknown merge type.
    """
    return MERGE_TYPE.read(options) != SKIP_MERGE
