"""Which merger a compaction may use.

A compaction stores what its merger decides and drops the merged versions. So the merger must be the table's own, unless
the user says that another one is meant.
"""

from __future__ import annotations

from hoodie_py.errors import InvalidQueryError
from hoodie_py.formats.config.merge_config import MergeMode
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.reader.merge.registry import as_merger, is_merger_of


def check_merger(config: TableConfig, merger: Merger | None, *, override: bool) -> None:
    """Refuse a merger that is not the table's.

    Raises:
        InvalidQueryError: the merger is not the table's, or is no merger.
    """
    if merger is None or override or is_merger_of(merger, config):
        return
    raise InvalidQueryError(
        f"{type(as_merger(merger)).__name__} is not the merger of this table, {_describe_own(config)}, "
        "and a compaction stores for good what it decides.",
        hint="Leave merger= out, or pass override_merger=True too (--override-merger) if that is what you want.",
        table=config.name,
    )


def keep_if_own(config: TableConfig, merger: Merger | None) -> Merger | None:
    """Return the merger if it is the table's own, else None."""
    return merger if merger is not None and is_merger_of(merger, config) else None


def _describe_own(config: TableConfig) -> str:
    """Describe how a table merges."""
    if config.merge_mode is not MergeMode.CUSTOM:
        return f"which merges by {config.merge_mode}"
    if config.is_payload_based:
        return f"which has payload class {config.payload_class}"
    return f"which has merge strategy {config.merge_strategy_id}"
