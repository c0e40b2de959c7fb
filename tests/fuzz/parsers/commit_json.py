"""Commit metadata, manifests and schema histories in JSON."""

from __future__ import annotations

import json
from contextlib import suppress

from hoodie_py.errors import HoodieError
from hoodie_py.formats.timeline.archive import parse_history_manifest, parse_history_version
from hoodie_py.formats.timeline.commit_metadata import CommitMetadata
from tests.fuzz.seeds import all_files, distinct, is_instant
from tests.fuzz.trees import is_built, tree

WORDS = (
    "operationType", "extraMetadata", "compacted", "partitionToWriteStats", "partitionToReplaceFileIds", "schema",
    "latest_schema", "fileId", "path", "prevCommit", "partitionPath", "baseFile", "logFiles", "cdcStats",
    "prevBaseFile", "runtimeStats", "numWrites", "logVersion", "totalScanTime", "files", "fileName", "fileLen", "a",
    "p/f.parquet", "../x", "/x", "a\\..\\b", "s3://b/x", "\0", "", ".", "..", "1_2_0.parquet", "recordsStats",
    "minEventTime",
)  # fmt: skip
BUILT_SEEDS = tuple(bytes.fromhex(text) for text in ("fe610361164162000700160800", "fe611341621400170014a9"))

MANIFEST = b'{"files":[{"fileName":"20260101000000000_20260102000000000_0.parquet","fileLen":4721}]}'


def seeds() -> list[bytes]:
    """Real commits in JSON, and a manifest."""
    json_files = (data for _, path, data in all_files(is_instant, 6000) if data[:1] == b"{")
    return [MANIFEST, b"7", *distinct(json_files, 40), *BUILT_SEEDS]


def parse(data: bytes) -> None:
    """Read as commit metadata, as a manifest and as its number."""
    if is_built(data):
        data = json.dumps(tree(data, WORDS)).encode()
    with suppress(HoodieError):
        commit = CommitMetadata.from_bytes(data)
        _ = commit.schema, commit.latest_schema
        for stat in commit.iterate_stats():
            assert stat.path is None or not escapes(stat.path)
            assert all("/" not in name for name in stat.log_files)
            _ = stat.file_name
        assert not any(map(escapes, (*commit.write_stats, *commit.replaced_file_ids)))
    with suppress(HoodieError):
        assert all("/" not in file.name for file in parse_history_manifest(data))
    parse_history_version(data)


def escapes(path: str) -> bool:
    """Whether a path could lead out of the folder it is joined to."""
    return path.startswith("/") or ".." in path.replace("\\", "/").split("/") or "\0" in path
