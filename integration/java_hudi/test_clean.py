"""A clean of ours removes what Java's would."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration.java_hudi.tables import Kind, Lake

VERSIONS = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS"}


def data_files(lake: Lake) -> set[str]:
    found = (path for path in lake.path.rglob("*") if ".hoodie" not in path.relative_to(lake.path).parts[0])
    names = {path.relative_to(lake.path).as_posix() for path in found if path.is_file()}
    return {name for name in names if not name.endswith(".crc") and ".hoodie_partition" not in name}


@pytest.mark.parametrize("lake", [Kind(9, True, True), Kind(6, False, True)], ids=str, indirect=True)
def test_we_remove_what_java_removes(lake: Lake, tmp_path: Path) -> None:
    for ts in (4, 6):
        lake.run_java()
        lake.change(ts)
    assert lake.open().schedule_compaction() is not None
    lake.change(7)
    lake.check()
    everything = data_files(lake)
    ways = [{"retain_commits": number} for number in (1, 3, 5)] + [
        {"file_versions_retained": number} for number in (1, 2)
    ]
    seen = set()
    for number, way in enumerate(ways):
        theirs, ours = lake.copied(tmp_path / f"java{number}"), lake.copied(tmp_path / f"ours{number}")
        policy = "KEEP_LATEST_COMMITS" if "retain_commits" in way else "KEEP_LATEST_FILE_VERSIONS"
        options = ",".join(f"{key}={value}" for key, value in lake.kind.service_options.items())
        theirs.java.call(theirs.path, "run_clean", clean_policy=policy, options=options, **way)
        ours.open().clean(
            way.get("retain_commits"),
            {"hoodie.clean.policy": policy, "hoodie.clean.fileversions.retained": way.get("file_versions_retained", 3)},
        )
        assert data_files(ours) == data_files(theirs), way
        assert data_files(ours) <= everything
        seen.add(len(data_files(ours)))
        ours.check()
    assert len(seen) > 1
