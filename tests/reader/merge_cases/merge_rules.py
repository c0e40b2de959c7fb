"""Hudi's names for what decides between two versions (BufferedRecordMergerFactory), to compare strategies with."""

from __future__ import annotations

from enum import Enum

from hoodie_py.formats.config.merge_config import MergeMode

EXPRESSION_PAYLOAD = "org.apache.spark.sql.hudi.command.payload.ExpressionPayload"


class MergeRule(Enum):
    """What decides between two versions; the values are Hudi's names."""

    COMMIT_TIME = "CommitTimeRecordMerger"
    COMMIT_TIME_COMPLETED = "CommitTimePartialRecordMerger"
    EVENT_TIME = "EventTimeRecordMerger"
    EVENT_TIME_COMPLETED = "EventTimePartialRecordMerger"
    KEEP_VALUES = "PartialUpdateBufferedRecordMerger"
    EXPRESSION = "ExpressionPayloadRecordMerger"
    PAYLOAD = "CustomPayloadRecordMerger"
    CUSTOM = "CustomRecordMerger"


def merge_rule(
    mode: MergeMode, *, completes: bool = False, partial_block: bool = False, payloads: tuple[str, str] | None = None
) -> MergeRule:
    """Return what decides between two versions.

    Args:
        mode: the table's merge mode.
        completes: whether the table has a partial update mode; CUSTOM does not look at it.
        partial_block: whether a log block of partial rows was seen.
        payloads: payload classes of stored and of incoming records, where payload classes decide.
    """
    if partial_block:
        return MergeRule.KEEP_VALUES
    if mode is MergeMode.COMMIT_TIME_ORDERING:
        return MergeRule.COMMIT_TIME_COMPLETED if completes else MergeRule.COMMIT_TIME
    if mode is MergeMode.EVENT_TIME_ORDERING:
        return MergeRule.EVENT_TIME_COMPLETED if completes else MergeRule.EVENT_TIME
    if payloads is None:
        return MergeRule.CUSTOM
    return MergeRule.EXPRESSION if payloads[1] == EXPRESSION_PAYLOAD else MergeRule.PAYLOAD
