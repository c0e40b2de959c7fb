from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hoodie_py.errors import InvalidTableError
from hoodie_py.formats.timeline.replace_plan import (
    ClusteringGroup,
    ClusteringSlice,
    RequestedReplace,
    write_clustering_plan,
)
from tests.corpus import unpack

SLICE = ClusteringSlice("f-0", "city=x", "f-0_1-2-3_1.parquet", (".f-0_2.log.1_1-2-3",))
PLAN = RequestedReplace(
    "CLUSTER",
    (ClusteringGroup((SLICE, ClusteringSlice("g-0", "city=x", None, ())), 2, {"TOTAL_IO_MB": 1.0}),),
    "a.Strategy",
    {"hoodie.clustering.plan.strategy.sort.columns": "a,b"},
    preserves_metadata=False,
    missing_partitions=("city=y",),
    extra_metadata={"k": "v"},
)


@pytest.mark.parametrize("name", ["clustering_done_cow_v6", "clustering_done_cow_v9"])
def test_java_s_plan_is_read_and_written_again(name: str, tmp_path: Path) -> None:
    base = unpack(name, tmp_path)
    [path] = [each for each in base.rglob("*.requested") if each.name.split(".")[1] in ("clustering", "replacecommit")]
    plan = RequestedReplace.from_bytes(path.read_bytes())
    assert plan.preserves_metadata
    assert RequestedReplace.from_bytes(write_clustering_plan(plan, "file:/elsewhere")) == plan


@pytest.mark.parametrize("bad", [{"groups": ()}, {"groups": None}, {"missing_partitions": ("../x",)}])
def test_a_plan_that_nobody_could_run_is_refused(bad: dict) -> None:
    with pytest.raises(InvalidTableError):
        write_clustering_plan(replace(PLAN, **bad), "file:/t")


@pytest.mark.parametrize("bad", [{"file_id": ""}, {"data_file": "../x.parquet"}, {"partition_path": "a/../.."}])
def test_slices_outside_the_table_are_refused(bad: dict) -> None:
    plan = replace(PLAN, groups=(ClusteringGroup((replace(SLICE, **bad),), 1),))
    with pytest.raises(InvalidTableError):
        write_clustering_plan(plan, "file:/t")
