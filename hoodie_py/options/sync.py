"""Options of the sync with a catalog (Java Hudi HoodieSyncConfig, HiveSyncConfigHolder, GlueCatalogSyncClientConfig).

The defaults are those of Hudi 1.2.0. The keys contain ``hive_sync`` for Glue, too.
"""

from __future__ import annotations

from collections.abc import Mapping

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.options.parse import Choice, Flag, Names, Number, Option, Text

_HIVE = "hoodie.datasource.hive_sync."
_GLUE = "hoodie.datasource.meta.sync.glue."
GLUE_TOOL = "org.apache.hudi.aws.sync.AwsGlueCatalogSyncTool"
DEFAULT_URI = "thrift://localhost:9083"
HIVE_TOOL = "org.apache.hudi.hive.HiveSyncTool"

# Whether a write syncs, and with which catalog
HIVE_ENABLE = Flag(f"{_HIVE}enable", default=False)
META_ENABLE = Flag("hoodie.datasource.meta.sync.enable", default=False)
TOOLS = Names("hoodie.meta.sync.client.tool.class")
MODE = Choice(f"{_HIVE}mode", ("HMS", "GLUE"), unhandled=("JDBC", "HIVEQL"))
URIS = Text(f"{_HIVE}metastore.uris")
IGNORE_ERRORS = Flag(f"{_HIVE}ignore_exceptions", default=False)

# Names of the entries
DATABASE = Text(f"{_HIVE}database")
TABLE = Text(f"{_HIVE}table")
GLUE_DATABASE = Text(f"{_GLUE}database_name")
GLUE_TABLE = Text(f"{_GLUE}table_name")
BASE_PATH = Text("hoodie.datasource.meta.sync.base.path")
STRATEGY = Choice(f"{_HIVE}table.strategy", ("ALL", "RO", "RT"))
SKIP_RO_SUFFIX = Flag(f"{_HIVE}skip_ro_suffix", default=False)
CREATE_DATABASE = Flag(f"{_HIVE}auto_create_database", default=True)

# Content of the entries
PARTITION_FIELDS = Names(f"{_HIVE}partition_fields")
EXTRACTOR = Text(f"{_HIVE}partition_extractor_class")
SUPPORT_TIMESTAMP = Flag(f"{_HIVE}support_timestamp", default=False)
OMIT_META_FIELDS = Flag(f"{_HIVE}omit_metadata_fields", default=False)
AS_DATA_SOURCE = Flag(f"{_HIVE}sync_as_datasource", default=True)
MANAGED = Flag(f"{_HIVE}create_managed_table", default=False)
SCHEMA_PART_LENGTH = Number(f"{_HIVE}schema_string_length_thresh", 4000, least=1)
TABLE_PROPERTIES = Text(f"{_HIVE}table_properties")
SERDE_PROPERTIES = Text(f"{_HIVE}serde_properties")
SPARK_VERSION = Text("hoodie.meta_sync.spark.version")
CONDITIONAL = Flag("hoodie.datasource.meta_sync.condition.sync", default=False)

# Glue
GLUE_SKIP_ARCHIVE = Flag(f"{_GLUE}skip_table_archive", default=True)
GLUE_METADATA_LISTING = Flag(f"{_GLUE}metadata_file_listing", default=False)

OPTIONS: tuple[Option, ...] = (
    HIVE_ENABLE, META_ENABLE, TOOLS, MODE, URIS, IGNORE_ERRORS, DATABASE, TABLE, GLUE_DATABASE, GLUE_TABLE, BASE_PATH,
    STRATEGY, SKIP_RO_SUFFIX, CREATE_DATABASE, PARTITION_FIELDS, EXTRACTOR, SUPPORT_TIMESTAMP, OMIT_META_FIELDS,
    AS_DATA_SOURCE, MANAGED, SCHEMA_PART_LENGTH, TABLE_PROPERTIES, SERDE_PROPERTIES, SPARK_VERSION, CONDITIONAL,
    GLUE_SKIP_ARCHIVE, GLUE_METADATA_LISTING,
)  # fmt: skip


def find_kinds(given: Mapping[str, str]) -> list[str]:
    """Return the kinds of catalogs that a write syncs with.

    As in Java, ``hoodie.datasource.hive_sync.enable`` selects Hive, and ``hoodie.datasource.meta.sync.enable`` the
    classes in ``hoodie.meta.sync.client.tool.class`` (Hive by default).

    Raises:
        InvalidQueryError: a value is not valid.
        UnsupportedFeatureError: Java would sync through a Hive server (JDBC), or a class is not one of Hudi's Hive and
            Glue tools.
    """
    hive = HIVE_ENABLE.read(given)
    if not (hive or META_ENABLE.read(given)):
        return []
    found = ["hive"] if hive else []
    for tool in TOOLS.read(given) or (HIVE_TOOL,):
        kind = {HIVE_TOOL: "hive", GLUE_TOOL: "glue"}.get(tool)
        if kind is None:
            raise UnsupportedFeatureError(f"{TOOLS}={tool[:200]}.", hint=f"There are {HIVE_TOOL} and {GLUE_TOOL}.")
        if META_ENABLE.read(given) or TOOLS.read(given):
            found.append(kind)
    if MODE.read_given(given) == "GLUE":
        found = ["glue" if each == "hive" else each for each in found]
    elif "hive" in found and MODE.read_given(given) is None:
        raise UnsupportedFeatureError(
            f"Without {MODE} Java syncs by JDBC through a Hive server, which is not supported.",
            hint=f"Set {MODE}=hms and {URIS}.",
        )
    return list(dict.fromkeys(found))
