"""Options of a clean by the names Java Hudi gives them (HoodieCleanConfig)."""

from __future__ import annotations

from hoodie_py.options.parse import Choice, Number, Option

KEEP_LATEST_COMMITS = "KEEP_LATEST_COMMITS"
KEEP_LATEST_FILE_VERSIONS = "KEEP_LATEST_FILE_VERSIONS"

POLICY = Choice(
    "hoodie.clean.policy",
    (KEEP_LATEST_COMMITS, KEEP_LATEST_FILE_VERSIONS),
    aliases=("hoodie.cleaner.policy",),
    unhandled=("KEEP_LATEST_BY_HOURS",),
)
COMMITS_RETAINED = Number("hoodie.clean.commits.retained", 10, 1, ("hoodie.cleaner.commits.retained",))
VERSIONS_RETAINED = Number("hoodie.clean.fileversions.retained", 3, 1, ("hoodie.cleaner.fileversions.retained",))

SAVEPOINTED = "savepointed_timestamps"  # extra metadata of a clean: savepoints that it respected, comma list

OPTIONS: tuple[Option, ...] = (POLICY, COMMITS_RETAINED, VERSIONS_RETAINED)
