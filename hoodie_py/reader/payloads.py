"""The payload classes of Java Hudi that hoodie_py stands in for.

A table of merge mode CUSTOM with the payload strategy names one of them in its properties: tables of version 6 and 8
any but the three that have merge modes of their own, tables of version 9 those that no mode replaces.
ExpressionPayload lives inside one write only, and HoodieMetadataPayload in the metadata table only; neither is here.
"""

from __future__ import annotations

from typing import Final

from hoodie_py.reader.payload_merger import PayloadMerger
from hoodie_py.reader.payloads_change_data import (
    AWSDmsAvroPayload,
    MySqlDebeziumAvroPayload,
    PostgresDebeziumAvroPayload,
)
from hoodie_py.reader.payloads_partial import OverwriteNonDefaultsWithLatestAvroPayload, PartialUpdateAvroPayload
from hoodie_py.reader.payloads_whole import (
    DefaultHoodieRecordPayload,
    EmptyHoodieRecordPayload,
    EventTimeAvroPayload,
    HoodieAvroPayload,
    OverwriteWithLatestAvroPayload,
    ReverseOrderHoodieRecordPayload,
)

_MERGERS: Final[tuple[type[PayloadMerger], ...]] = (
    AWSDmsAvroPayload,
    DefaultHoodieRecordPayload,
    EmptyHoodieRecordPayload,
    EventTimeAvroPayload,
    HoodieAvroPayload,
    MySqlDebeziumAvroPayload,
    OverwriteNonDefaultsWithLatestAvroPayload,
    OverwriteWithLatestAvroPayload,
    PartialUpdateAvroPayload,
    PostgresDebeziumAvroPayload,
    ReverseOrderHoodieRecordPayload,
)
_BY_NAME: Final = {name: merger for merger in _MERGERS for name in merger.payload_classes}


def make_builtin_payload_merger(payload_class: str) -> PayloadMerger | None:
    """Return the merger that stands in for a Java payload class; None for one that is not known here."""
    merger = _BY_NAME.get(payload_class)
    return None if merger is None else merger()
