"""What tells about a table opens none of its data files: they may be gone, damaged, or of a format without a reader.

Also the tables beside the corpus that other writers wrote, where they are at hand.
"""

from __future__ import annotations

import shutil
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie_py import CorruptFileError, FileMissingError, HoodieTable, InvalidTableError
from hoodie_py.formats.names import parse_base_file_name, parse_log_file_name
from tests.corpus import WHOLE, corpus_names

REPORTS = WHOLE.parent / "reports"
COMMANDS = ("show", "timeline", "slices")


def list_data_files(table: Path) -> list[Path]:
    files = (path for path in table.rglob("*") if path.is_file() and ".hoodie" not in path.relative_to(table).parts)
    return [path for path in files if parse_log_file_name(path.name) or parse_base_file_name(path.name)]


def remove(path: Path) -> None:
    path.unlink()


def spoil(path: Path) -> None:
    path.chmod(stat.S_IRUSR | stat.S_IWUSR)
    path.write_bytes(b"neither Parquet nor a log")


def rename(path: Path) -> None:
    """Give a base file the extension of another format."""
    if not path.name.startswith("."):
        path.rename(path.with_suffix(".orc"))


def ask_everything(uri: Path) -> dict[str, Any]:
    """Return what can be known of a table without its rows."""
    table = HoodieTable.open(uri)
    inspect = table.inspect
    plans = [each.request_time for each in table.timeline if each.action == "compaction"]
    return {
        "config": table.config,
        "repr": repr(table) + table._repr_html_(),
        "timeline": list(table.timeline),
        "slices": [(each.partition_path, each.file_id, each.base_instant) for each in table.file_slices()],
        "inspect": {name: getattr(inspect, name)() for name in ("timeline", "files", "slices", "stats")},
        "archived": inspect.timeline(archived=True),
        "plans": [inspect.compaction_plan(each) for each in plans],
    }


@pytest.mark.parametrize("name", corpus_names())
def test_every_table_of_the_corpus(
    corpus: Callable[[str], Path], hoodie: Callable[..., Any], tmp_path: Path, name: str
) -> None:
    known = ask_everything(corpus(name))
    table = tmp_path / "table"
    shutil.copytree(corpus(name), table)
    change = (rename, spoil, remove)[corpus_names().index(name) % 3]  # each table meets one of them
    for path in list_data_files(table):
        change(path)
    found = ask_everything(table)
    for part in ("timeline", "archived", "plans"):
        assert found[part] == known[part]
    if change is not remove:
        assert found["slices"] == known["slices"]
    for command in COMMANDS:
        hoodie(command, table)
        hoodie(command, table, "--json")


@pytest.mark.skipif(not REPORTS.is_dir(), reason="NOT TESTED: the tables of other writers are not at hand")
@pytest.mark.filterwarnings("ignore:The metadata table of table")  # one of them was packed without it
def test_every_table_of_other_writers(hoodie: Callable[..., Any], tmp_path: Path) -> None:
    for packed in sorted(REPORTS.glob("*/table.zip")):
        with zipfile.ZipFile(packed) as archive:
            archive.extractall(tmp_path / packed.parent.name)
        table = next((tmp_path / packed.parent.name).rglob(".hoodie/hoodie.properties")).parents[1]
        for change in (None, remove):
            for path in list_data_files(table):
                if change is not None:
                    change(path)
            ask_everything(table)
            for command in COMMANDS:
                hoodie(command, table, "--json")


@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_any_files_may_be_gone_or_damaged(
    corpus: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from([each for each in corpus_names() if not each.startswith("big")]))
    table = tmp_path_factory.mktemp("table") / "table"
    shutil.copytree(corpus(name), table)
    for path in data.draw(st.sets(st.sampled_from(sorted(list_data_files(table)) or [None]))):
        if path is not None:
            data.draw(st.sampled_from((rename, spoil, remove)))(path)
    ask_everything(table)
    shutil.rmtree(table)


def test_an_index_of_a_bootstrap_that_is_gone_is_an_error_of_reads_only(
    corpus: Callable[[str], Path], hoodie: Callable[..., Any], tmp_path: Path
) -> None:
    table = tmp_path / "table"
    shutil.copytree(corpus("bootstrap_metadata_only_mor_v9"), table)
    shutil.rmtree(table / ".hoodie" / ".aux")
    ask_everything(table)
    for command in COMMANDS:
        hoodie(command, table)
    opened = HoodieTable.open(table)
    with pytest.raises(FileMissingError, match="bootstrap index is missing"):
        opened.scan().to_arrow()
    unread = next(each for each in opened.file_slices() if each.base_instant == "00000000000001")
    assert unread.base_file is not None
    assert unread.base_file.source is None


def test_columns_that_cannot_be_found_are_no_error(hoodie: Callable[..., Any], tmp_path: Path) -> None:
    """The commits of this table have no schema, and its data files are gone."""
    table = HoodieTable.create(tmp_path / "t", pa.schema({"id": pa.int64()}), record_key="id", table_version=6)
    table.upsert([{"id": 1}])
    forget_schema(tmp_path / "t")
    for path in list_data_files(tmp_path / "t"):
        path.unlink()
    shown = hoodie("show", tmp_path / "t")
    assert "columns are unknown" in shown.stderr
    assert "MERGE_ON_READ, version 6" in shown.stdout
    ask_everything(tmp_path / "t")
    with pytest.raises(InvalidTableError, match="columns are unknown"):
        HoodieTable.open(tmp_path / "t").scan().to_arrow()


def test_a_damaged_commit_stays_an_error(corpus: Callable[[str], Path], tmp_path: Path) -> None:
    table = tmp_path / "table"
    shutil.copytree(corpus("basic_mor_v9_part"), table)
    timeline = next((table / ".hoodie" / "timeline").glob("*.deltacommit"))
    timeline.chmod(stat.S_IRUSR | stat.S_IWUSR)
    timeline.write_bytes(b"Obj\x01damaged")
    with pytest.raises(CorruptFileError):
        HoodieTable.open(table).inspect.stats()


def forget_schema(table: Path) -> None:
    """Take the columns out of the properties and commits of a table of version 6."""
    properties = table / ".hoodie" / "hoodie.properties"
    lines = properties.read_text().splitlines(keepends=True)
    properties.write_text("".join(line for line in lines if not line.startswith("hoodie.table.create.schema")))
    for commit in [*(table / ".hoodie").glob("*.deltacommit"), *(table / ".hoodie").glob("*.commit")]:
        commit.write_text(commit.read_text().replace('"schema"', '"forgotten"'))
