"""A clean of ours removes what Java's would."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_py.errors import InvalidQueryError
from integration.java_hudi.session import JavaSession
from integration.java_hudi.tables import SCHEMA, Kind, Lake, make_row

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


@pytest.mark.parametrize("merge_on_read", [True, False], ids=["mor", "cow"])
def test_an_instant_whose_versions_are_gone(java: JavaSession, merge_on_read: bool, tmp_path: Path) -> None:
    """Java shows what is left of it; we refuse it, whoever cleaned."""
    lake = Lake(java, tmp_path / "table", Kind(9, False, True, merge_on_read))
    lake.write([make_row(number) for number in range(6)], "insert", mode="overwrite")
    for ts in (2, 3, 4):
        lake.write([make_row(number, ts) for number in range(3)])
        if merge_on_read:
            lake.run_java()
    first, *_, last = (each.request_time for each in lake.open().timeline.select_writes())
    options = ",".join(f"{key}={value}" for key, value in lake.kind.service_options.items())
    java.call(
        lake.path,
        "run_clean",
        clean_policy=VERSIONS["hoodie.clean.policy"],
        file_versions_retained=1,
        options=options,
    )
    assert java.read(lake.path, **{"as.of.instant": first}).num_rows < 6
    with pytest.raises(InvalidQueryError, match="were cleaned"):
        lake.open().scan(as_of=first).to_arrow()
    assert lake.open().scan(as_of=last).count() == java.read(lake.path, **{"as.of.instant": last}).num_rows == 6


@pytest.mark.parametrize(
    "options",
    [
        {"hoodie.clean.trigger.max.commits": "100"},
        {"hoodie.clean.max.commits": "100"},
        {"hoodie.clean.max.commits": "3"},
        {"hoodie.clean.trigger.max.commits": "4", "hoodie.clean.max.commits.to.clean": "1"},
        {},
    ],
    ids=str,
)
def test_automatic_cleans_come_as_often_as_javas(java: JavaSession, options: dict[str, str], tmp_path: Path) -> None:
    given = {"hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "1", **options}
    lake = Lake(java, tmp_path / "theirs", Kind(9, False, False, merge_on_read=False))
    lake.write([make_row(1)], "insert", mode="overwrite")
    ours = lake.copied(tmp_path / "ours").open()
    for ts in range(2, 11):
        lake.write([make_row(1, ts)], **{name.replace(".", "__"): value for name, value in given.items()})
        ours.upsert(pa.Table.from_pylist([make_row(1, ts)], SCHEMA), options=given)
    theirs = lake.open()
    assert [each.action for each in ours.timeline] == [each.action for each in theirs.timeline]
    assert len(ours.inspect.files()) == len(theirs.inspect.files())
