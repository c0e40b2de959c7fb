"""Make an empty metadata table (Hudi ``HoodieBackedTableMetadataWriter.initializeMetaClient``).

It is a merge-on-read table in ``.hoodie/metadata`` with the version of the table around it. Its timeline is empty: each
partition comes with a delta commit of its own (``initial_commit``).
"""

from __future__ import annotations

from datetime import UTC, datetime

from hoodie_py.files import TableFiles
from hoodie_py.formats.config import table_config as keys
from hoodie_py.formats.config.merge_config import PAYLOAD_STRATEGY_ID, MergeMode
from hoodie_py.formats.config.properties import format_properties
from hoodie_py.formats.config.table_config import PROPERTIES_FILE, TableConfig, compute_table_checksum
from hoodie_py.formats.config.whole_properties import seal_properties
from hoodie_py.formats.names import METADATA_FOLDER
from hoodie_py.writer.create.create import PLACEHOLDER

KEY_GENERATOR = "HOODIE_TABLE_METADATA"


def make_metadata_properties(around: TableConfig) -> dict[str, str]:
    """Return the properties of the metadata table of a table, as Java writes them."""
    name = f"{around.name}_metadata"
    own_names = around.has_logs_named_by_commit
    found = {
        keys.NAME: name,
        keys.TYPE: "MERGE_ON_READ",
        keys.VERSION: str(around.version),
        keys.TIMELINE_LAYOUT: str(around.timeline_layout),
        keys.BASE_FILE_FORMAT: "HFILE",
        keys.RECORD_KEY_FIELDS: "key",
        keys.POPULATE_META_FIELDS: "false",
        keys.PAYLOAD_CLASS: keys.METADATA_PAYLOAD,
        keys.MERGE_STRATEGY_ID: PAYLOAD_STRATEGY_ID,
        keys.KEY_GENERATOR_TYPE: KEY_GENERATOR,
        keys.DROP_PARTITION_COLUMNS: "false",
        keys.ARCHIVE_FOLDER: "history" if own_names else "archived",
        keys.TIMELINE_PATH: "timeline",
        keys.HISTORY_PATH: "history",
        keys.CHECKSUM: str(compute_table_checksum(name)),
    }
    if own_names:
        found |= {keys.INITIAL_VERSION: str(around.version), keys.MERGE_MODE: MergeMode.CUSTOM.value}
    return found


def create_metadata_table(files: TableFiles, around: TableConfig) -> TableConfig:
    """Create the metadata table where there is none and return its properties; ``files`` are those of its folder.

    Raises:
        ConflictError: there is one.
        CommitStateUnknownError: the store did not say whether it was made.
        StorageError: the store refused.
    """
    stored = make_metadata_properties(around)
    config = TableConfig.from_properties(stored)
    if config.timeline_layout > 1:
        files.put(f"{config.find_history_folder()}/{PLACEHOLDER}", b"")
    comment = f"Properties saved on {datetime.now(UTC).isoformat()}"
    content = seal_properties(format_properties(stored, comment=comment))
    files.put_if_absent(f"{METADATA_FOLDER}/{PROPERTIES_FILE}", content, unique=True)
    return config
