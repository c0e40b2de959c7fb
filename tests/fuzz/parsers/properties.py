"""Java properties files, and the table configuration made of them."""

from __future__ import annotations

from contextlib import suppress

from hoodie_py.errors import HoodieError
from hoodie_py.formats.config import table_config
from hoodie_py.formats.config.properties import format_properties, parse_properties
from hoodie_py.formats.config.table_config import CHECKSUM, TableConfig, compute_table_checksum
from tests.fuzz.seeds import all_files, distinct
from tests.fuzz.trees import is_built

SHORT = 500  # bytes that are also written and read again, which is slow
VALUES = (
    "", "a", "a,b", "a:SIMPLE,b:TIMESTAMP", "true", "false", "6", "8", "9", "1", "2", "x", "../x", "/x",
    "COPY_ON_WRITE", "MERGE_ON_READ", "PARQUET", "ORC", "CUSTOM", "EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING",
    "native", "UTC", "LOCAL",
    "00000000-0000-0000-0000-000000000000", "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5", "IGNORE_DEFAULTS",
    "org.apache.hudi.common.model.DefaultHoodieRecordPayload", "com.example.Own", "files,column_stats", "DATA_BEFORE",
)  # fmt: skip


_KEYS = {value for value in vars(table_config).values() if isinstance(value, str) and value.startswith("hoodie.")}


def seeds() -> list[bytes]:
    """Every real hoodie.properties."""
    return [
        *distinct((data for _, _, data in all_files(lambda path: path.endswith("/hoodie.properties"))), 60),
        bytes([0xFE, *range(40)]),
    ]


def parse(data: bytes) -> None:
    """Read the properties, write and read short ones again, and resolve them with and without their checksum."""
    if is_built(data):
        keys = sorted(_KEYS)
        pairs = zip(data[1::2], data[2::2], strict=False)
        data = format_properties({keys[key % len(keys)]: VALUES[value % len(VALUES)] for key, value in pairs})
    with suppress(HoodieError):
        properties = parse_properties(data)
        if len(data) <= SHORT:
            assert parse_properties(format_properties(properties)) == properties
        with suppress(HoodieError):
            config = TableConfig.from_bytes(data)
            assert ".." not in config.find_timeline_folder().split("/")
            assert ".." not in config.find_history_folder().split("/")
            _ = config.timestamp_keygen, config.merge_ordering_fields
        name, database = properties.get("hoodie.table.name", "t"), properties.get("hoodie.database.name", "")
        with suppress(HoodieError):
            TableConfig.from_properties(
                {"hoodie.table.name": name, "hoodie.table.version": "9"}
                | properties
                | {CHECKSUM: str(compute_table_checksum(name, database))}
            )
