"""The custom merger of the histories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hoodie_py import BufferedRecord, RecordContext, RecordMerger, register_merger
from integration.histories.rules import LONGEST_NAME, WEIGHT_OF_A_BARE_DELETE


class Weighted(RecordMerger):
    """An ordering of its own over updates and deletes: a row weighs the rest of its total by four."""

    strategy_id = "6b0f0f7c-6d3e-4f0e-9d7a-7f1a52c1b9c4"

    def merge(
        self,
        older: BufferedRecord[Any],
        newer: BufferedRecord[Any],
        context: RecordContext[Any],
        props: Mapping[str, str],
    ) -> BufferedRecord[Any]:
        heavier = _weight(newer, context) >= _weight(older, context)
        win, lose = (newer, older) if heavier else (older, newer)
        if older.is_delete or newer.is_delete:
            return win
        name = context.get_value(win, "name") + context.get_value(lose, "name")
        return context.replace(win, name=name[:LONGEST_NAME])


register_merger(Weighted)  # writers of the metadata table are not given one


def _weight(record: BufferedRecord[Any], context: RecordContext[Any]) -> int:
    total = context.get_value(record, "total")
    return WEIGHT_OF_A_BARE_DELETE if total is None else int(total) % 4
