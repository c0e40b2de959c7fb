"""Options of a clean by the names Java Hudi gives them (HoodieCleanConfig), older names as ``..._ALIAS``."""

from __future__ import annotations

POLICY = "hoodie.clean.policy"
POLICY_ALIAS = "hoodie.cleaner.policy"
COMMITS_RETAINED = "hoodie.clean.commits.retained"
COMMITS_RETAINED_ALIAS = "hoodie.cleaner.commits.retained"
VERSIONS_RETAINED = "hoodie.clean.fileversions.retained"
VERSIONS_RETAINED_ALIAS = "hoodie.cleaner.fileversions.retained"

KEEP_LATEST_COMMITS = "KEEP_LATEST_COMMITS"
KEEP_LATEST_FILE_VERSIONS = "KEEP_LATEST_FILE_VERSIONS"

SAVEPOINTED = "savepointed_timestamps"  # extra metadata of a clean: savepoints that it respected, comma list
