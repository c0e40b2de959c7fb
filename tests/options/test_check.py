"""Each option that is given is honoured, refused, warned of, or passed over for a reason."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieError, HoodieTable, HoodieWarning, InvalidQueryError, UnsupportedFeatureError
from hoodie_py.options import undone
from hoodie_py.options.check import (
    OF_READS,
    OF_WRITES,
    check_read_options,
    check_table_properties,
    check_write_options,
    list_passed_over,
)
from hoodie_py.options.parse import Choice, Flag, Number, Option, Real
from hoodie_py.options.undone import UnsupportedOption
from tests.corpus import ROOT

Check = Callable[[Mapping[str, str]], None]
DECLARED = list(dict.fromkeys(OF_WRITES))
NOT_DONE = (*undone.OF_READS, *undone.OF_WRITES)
QUICK_START = {  # of Hudi's own guides and its documentation
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "uuid",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.datasource.write.row.writer.enable": "true",
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.insert.shuffle.parallelism": "2",
    "hoodie.bulkinsert.shuffle.parallelism": "2",
    "hoodie.delete.shuffle.parallelism": "2",
    "hoodie.datasource.hive_sync.enable": "false",
    "hoodie.datasource.hive_sync.database": "default",
    "hoodie.datasource.hive_sync.table": "trips",
    "hoodie.datasource.hive_sync.mode": "hms",
    "hoodie.datasource.hive_sync.partition_extractor_class": "org.apache.hudi.hive.MultiPartKeysValueExtractor",
    "hoodie.metadata.enable": "true",
    "hoodie.enable.data.skipping": "true",
    "hoodie.clustering.inline": "false",
    "hoodie.clustering.inline.max.commits": "4",
    "hoodie.clustering.plan.strategy.sort.columns": "ts,city",
    "hoodie.keep.min.commits": "20",
    "hoodie.keep.max.commits": "30",
    "hoodie.cleaner.commits.retained": "10",
    "hoodie.parquet.max.file.size": "125829120",
    "hoodie.parquet.small.file.limit": "104857600",
    "hoodie.copyonwrite.record.size.estimate": "1024",
    "hoodie.write.markers.type": "direct",
    "hoodie.embed.timeline.server": "false",
    "hoodie.index.type": "BLOOM",
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.write.lock.client.num_retries": "15",
    "hoodie.datasource.compaction.async.enable": "false",
    "hoodie.compact.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "2",
    "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
    "hoodie.streamer.source.dfs.root": "s3://in",
    "hoodie.my.own.merger.threshold": "17",
}


def bad_text(option: Option) -> str | None:
    if isinstance(option, Flag):
        return "yes"
    if isinstance(option, Number | Real):
        return "1GB"
    return "no-such-word" if isinstance(option, Choice) else None


def good_text(option: Option) -> str:
    if isinstance(option, Flag):
        return str(option.default).upper()
    if isinstance(option, Number | Real):
        return str(max(option.default, getattr(option, "least", 0)))
    return option.choices[0].lower() if isinstance(option, Choice) else "a"


@pytest.mark.parametrize("option", DECLARED, ids=str)
def test_each_declared_key_takes_its_default_and_refuses_what_has_no_meaning(option: Option) -> None:
    checks: list[Check] = [check_write_options, *([check_read_options] if option in OF_READS else [])]
    refused = {str(each.option) for each in NOT_DONE if each.refused}
    for check in checks:
        for name in option.names:
            if name not in refused:
                check({name: good_text(option)})
            text = bad_text(option)
            if text is not None:
                with pytest.raises(InvalidQueryError, match=f"{option} cannot be '{text}'") as caught:
                    check({name: text})
                assert caught.value.hint
                assert caught.value.hint.startswith("Give ")


def test_keys_are_declared_once() -> None:
    names = [name for option in DECLARED for name in option.names]
    assert len(names) == len(set(names))
    assert set(names).isdisjoint(str(each.option) for each in undone.OF_WRITES)


@pytest.mark.parametrize("option", [each for each in DECLARED if each not in OF_READS], ids=str)
def test_what_concerns_writes_is_passed_over_by_reads(option: Option) -> None:
    check_read_options(dict.fromkeys(option.names, "any text"))


@pytest.mark.parametrize("each", undone.OF_WRITES, ids=lambda each: str(each.option))
def test_what_is_asked_for_and_not_done_is_told(each: UnsupportedOption) -> None:
    name = str(each.option)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for text in ("", *each.harmless):
            check_write_options({name: text.upper()})
        check_read_options({name: asked(each)})
    if each.refused:
        with pytest.raises(UnsupportedFeatureError, match=f"{name}={asked(each)}: "):
            check_write_options({name: asked(each)})
    else:
        with pytest.warns(HoodieWarning, match=f"{name}: "):
            check_write_options({name: asked(each)})
    if isinstance(each.option, Flag):
        with pytest.raises(InvalidQueryError, match="cannot be 'yes'"):
            check_write_options({name: "yes"})


def asked(each: UnsupportedOption) -> str:
    if isinstance(each.option, Flag):
        return "false" if "true" in each.harmless else "true"
    return "something"


@pytest.mark.parametrize("each", undone.OF_READS, ids=lambda each: str(each.option))
def test_reads_that_would_give_other_rows_are_refused(each: UnsupportedOption) -> None:
    for check in (check_read_options, check_write_options):
        with pytest.raises(UnsupportedFeatureError, match=str(each.option)):
            check({str(each.option): asked(each)})


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("hoodie.compact.inlin", "hoodie.compact.inline"),
        ("hoodie.compation.inline", None),
        ("hoodie.datasource.write.recordkey.fields", "hoodie.datasource.write.recordkey.field"),
        ("hoodie.datasource.write.precombin.field", "hoodie.datasource.write.precombine.field"),
        ("hoodie.merge.use.record.postions", "hoodie.merge.use.record.positions"),
        ("hoodie.parquet.max.filesize", "hoodie.parquet.max.file.size"),
        ("hoodie.datasource.hivesync.enable", "hoodie.datasource.hive_sync.enable"),
        ("hoodie.metadata.enabled", "hoodie.metadata.enable"),
        ("Hoodie.Compact.Inline", "hoodie.compact.inline"),
        ("as.of.instants", "as.of.instant"),
        ("as_of.instant", "as.of.instant"),
        ("hoodie_py.read.thread", "hoodie_py.read.threads"),
        ("hoodie.my.own.setting", None),
        ("spark.sql.shuffle.partitions", None),
        ("path", None),
    ],
)
def test_a_slip_of_the_pen_is_an_error_that_says_what_was_meant(name: str, meant: str | None) -> None:
    for check in (check_read_options, check_write_options):
        if meant is None:
            check({name: "1"})
            continue
        with pytest.raises(InvalidQueryError, match=f"Unknown option '{name}'") as caught:
            check({name: "1"})
        assert caught.value.hint == f"Did you mean {meant}?"


def test_names_of_java_hudi_are_no_slips_nor_as_spark_spells_them() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in list_passed_over():
            for check in (check_read_options, check_write_options):
                check({name: "1", name.lower(): "1"})


def test_hudis_own_option_sets_pass_without_a_word() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_write_options(QUICK_START)
        check_read_options(QUICK_START)


@pytest.mark.parametrize(
    ("properties", "error", "said"),
    [
        ({"hoodie.compact.inline": "true"}, InvalidQueryError, "no property of a table"),
        ({"hoodie.datasource.hive_sync.enable": "true"}, InvalidQueryError, "no property of a table"),
        ({"hoodie.table.cdc.enable": "true"}, InvalidQueryError, "Unknown option"),
        ({"hoodie.populate.meta.fields": "no"}, InvalidQueryError, "cannot be 'no'"),
        ({"hoodie.table.base.file.format": "ORC"}, UnsupportedFeatureError, "hoodie.table.base.file.format=ORC"),
        ({"hoodie.table.cdc.supplemental.logging.mode": "ALL"}, InvalidQueryError, "cannot be 'ALL'"),
    ],
)
def test_properties_of_a_new_table_are_checked(
    tmp_path: Path, properties: dict[str, str], error: type[HoodieError], said: str
) -> None:
    with pytest.raises(error, match=said):
        HoodieTable.create(tmp_path / "t", pa.schema([("id", pa.string())]), record_key="id", properties=properties)
    assert not (tmp_path / "t").exists()
    with pytest.raises(error, match=said):
        check_table_properties(properties)


def test_reads_and_writes_check_what_they_are_given(tmp_path: Path) -> None:
    table = HoodieTable.create(tmp_path / "t", pa.schema([("id", pa.string())]), record_key="id")
    for call in writes(table):
        with pytest.raises(InvalidQueryError, match=r"hoodie\.memory\.merge\.max\.size cannot be '1GB'"):
            call({"hoodie.memory.merge.max.size": "1GB"})
        with pytest.raises(InvalidQueryError, match="Unknown option"):
            call({"hoodie.write.lock.providers": "x"})
    for write in writes(table)[1:]:
        with pytest.raises(UnsupportedFeatureError, match="validated"):
            write({"hoodie.precommit.validators": "a.b.C"})
    assert list(table.timeline) == []
    with pytest.warns(HoodieWarning, match="No metrics are reported"):
        table.upsert([{"id": "a"}], options={"hoodie.metrics.on": True})
    assert HoodieTable.open(tmp_path / "t").scan(options={"hoodie.query.as.ro.table": "true"}).count() == 1


def writes(table: HoodieTable) -> list[Callable[[dict[str, Any]], Any]]:
    return [
        lambda options: table.scan(options=options),
        lambda options: table.upsert([{"id": "a"}], options=options),
        lambda options: table.delete(["a"], options=options),
        lambda options: table.compact(options=options),
        lambda options: table.clean(options=options),
    ]


JAVA = ROOT / "tests" / "data" / "java_options.txt"
SPECIFICATION = ROOT.parent / "shared" / "spec" / "java_options.json"
HONOURED = {name for option in OF_WRITES for name in option.names}
TOLD = {name for each in (*undone.OF_READS, *undone.OF_WRITES) for name in each.option.names}


def read_java_names() -> dict[str, list[str]]:
    """Return Java's alternative names by key."""
    lines = [line.split() for line in JAVA.read_text().splitlines() if not line.startswith("#")]
    return {key: alternatives for key, *alternatives in lines}


def test_every_key_of_java_hudi_and_every_alternative_name_has_its_place() -> None:
    keys = read_java_names()
    assert len(keys) == 663
    names = {name for key, alternatives in keys.items() for name in (key, *alternatives)}
    assert sorted(names - HONOURED - TOLD - list_passed_over().keys()) == []


def test_alternative_names_of_honoured_keys_are_honoured() -> None:
    lacking = {
        name
        for key, alternatives in read_java_names().items()
        for name in alternatives
        if key in HONOURED and name not in HONOURED
    }
    assert not lacking


def test_what_is_passed_over_is_neither_honoured_nor_told_of() -> None:
    passed_over = list_passed_over()
    assert passed_over.keys().isdisjoint(HONOURED | TOLD)
    assert all(reason.endswith(".") for reason in passed_over.values())


def test_the_list_of_java_keys_is_that_of_the_specification() -> None:
    if not SPECIFICATION.is_file():
        pytest.skip("NOT TESTED: there is no specification beside this checkout")
    known = json.loads(SPECIFICATION.read_text())
    assert read_java_names() == {key: sorted(each["alternatives"]) for key, each in known.items()}
