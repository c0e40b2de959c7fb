"""The payload classes of Java Hudi that are built in.

A table of merge mode CUSTOM with the payload strategy names its class in its properties. In table versions 6 and 8 this
is any class except the three that a merge mode replaces; in version 9 more classes have a merge mode. ExpressionPayload
exists only during a write, so it is missing here. HoodieMetadataPayload, which only the metadata table uses, is
imported when such a table is read.
"""

from __future__ import annotations

from typing import Final

from hoodie_py.formats.config.table_config import METADATA_PAYLOAD
from hoodie_py.reader.payloads.change_data import (
    AWSDmsAvroPayload,
    MySqlDebeziumAvroPayload,
    PostgresDebeziumAvroPayload,
)
from hoodie_py.reader.payloads.merger import PayloadMerger
from hoodie_py.reader.payloads.overwrite import (
    DefaultHoodieRecordPayload,
    EmptyHoodieRecordPayload,
    EventTimeAvroPayload,
    HoodieAvroPayload,
    OverwriteNonDefaultsWithLatestAvroPayload,
    OverwriteWithLatestAvroPayload,
    PartialUpdateAvroPayload,
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
    """Make the merger of a Java payload class; None for an unknown class."""
    if payload_class == METADATA_PAYLOAD:
        from hoodie_py.reader.payloads.metadata_table import HoodieMetadataPayload

        return HoodieMetadataPayload()
    merger = _BY_NAME.get(payload_class)
    return None if merger is None else merger()
