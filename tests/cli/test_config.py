from __future__ import annotations

import json
from pathlib import Path

import pytest

from hoodie_py import InvalidQueryError
from hoodie_py.cli.config import Config, NamedTable, find_config_file, load_config
from hoodie_py.cli.options import complete_table, parse_storage_options
from tests.metastore.fake_metastore import FakeMetastore
from tests.metastore.test_sync import make_table


@pytest.fixture
def write_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def write(text: str) -> Path:
        path = tmp_path / "config.toml"
        path.write_text(text)
        monkeypatch.setenv("HOODIE_CONFIG", str(path))
        return path

    return write


def test_where_the_file_is(monkeypatch, tmp_path) -> None:
    monkeypatch.delenv("HOODIE_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert find_config_file() == tmp_path / "hoodie" / "config.toml"
    assert load_config() == Config()
    monkeypatch.delenv("XDG_CONFIG_HOME")
    assert find_config_file() == Path.home() / ".config" / "hoodie" / "config.toml"


def test_names_and_their_options(write_config) -> None:
    write_config("""
        [tables.trips]
        path = "s3://lake/trips"
        storage_options = {anon = false, client_kwargs = {region_name = "eu-west-1"}}
        [stores."s3://lake/"]
        anon = true
        key = "k"
    """)
    config = load_config()
    assert config.resolve("trips").path == "s3://lake/trips"
    region = {"client_kwargs": {"region_name": "eu-west-1"}}
    assert config.resolve("trips").storage_options == {"anon": False, "key": "k", **region}
    assert config.resolve("s3://lake/other").storage_options == {"anon": True, "key": "k"}
    assert config.resolve("s3://else/trips") == NamedTable("s3://else/trips")
    assert "anon" not in repr(config)


def test_a_folder_goes_before_a_name(write_config, tmp_path, monkeypatch) -> None:
    write_config('[tables.trips]\npath = "/elsewhere"')
    (tmp_path / "trips").mkdir()
    monkeypatch.chdir(tmp_path)
    assert load_config().resolve("trips").path == "trips"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[tables", "not TOML"),
        ("[table.trips]", r"Unknown entry 'table' in the configuration.*Did you mean tables\?"),
        ('[tables.trips]\npaht = "x"', r"Unknown entry 'paht' in tables\.trips.*Did you mean path\?"),
        ("[tables.trips]", r"tables\.trips of the configuration needs path"),
        ("tables = 3", "tables of the configuration must be a table"),
        ("[catalogs.prod]\nkind = 3", "needs kind, a text"),
    ],
)
def test_files_that_are_wrong(write_config, text, said) -> None:
    path = write_config(text)
    with pytest.raises(InvalidQueryError, match=f"(?s){said}") as caught:
        load_config()
    assert caught.value.where["path"] == path


def test_a_file_that_is_named_and_not_there(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("HOODIE_CONFIG", str(tmp_path / "none.toml"))
    with pytest.raises(InvalidQueryError, match="names no file"):
        load_config()


def test_commands_take_names(hoodie, write_config, tmp_path, monkeypatch) -> None:
    make_table(tmp_path / "lake" / "t")
    write_config(f'[tables.trips]\npath = "{tmp_path}/lake/t"')
    assert json.loads(hoodie("show", "trips", "--json").stdout)["path"] == f"{tmp_path}/lake/t"
    assert json.loads(hoodie("tables", "--json").stdout) == [
        {"name": "trips", "path": f"{tmp_path}/lake/t", "instant": None, "query_type": "snapshot"}
    ]
    assert "trips" in hoodie("tables").stdout
    assert hoodie("show", "tripps", status=1).stderr.startswith("error: There is no Hudi table here")


def test_options_of_one_table_are_not_those_of_the_next(hoodie, write_config, tmp_path) -> None:
    make_table(tmp_path / "t")
    write_config(f'[tables.trips]\npath = "{tmp_path}/t"\nstorage_options = {{nonsense = 1}}')
    hoodie("show", "trips")
    assert parse_storage_options(["anon=true"], None) == {"nonsense": 1, "anon": True}
    hoodie("show", tmp_path / "t")
    assert parse_storage_options(None, None) == {}


def test_a_wrong_file_is_an_error_of_the_command(hoodie, write_config, tmp_path) -> None:
    write_config("[tables")
    assert hoodie("show", tmp_path, status=1).stderr.startswith("error: The configuration is not TOML")


def test_tables_of_a_catalog_have_names(hoodie, write_config, tmp_path, monkeypatch) -> None:
    from hoodie_py import catalog

    fake = FakeMetastore()
    monkeypatch.setattr(catalog, "connect", lambda *_: fake)
    make_table(tmp_path / "t").sync(fake, "lake")
    write_config('[catalogs.prod]\nkind = "hive"\nuri = "thrift://h"')
    assert json.loads(hoodie("show", "prod:lake.t", "--json").stdout)["path"] == str(tmp_path / "t")
    assert [each["name"] for each in json.loads(hoodie("tables", "--json").stdout)] == ["prod:lake.t"]
    assert hoodie("show", "prod:lake.u", status=1).stderr.startswith("error: The catalog has no table lake.u.")


def test_a_catalog_that_fails_is_said(hoodie, write_config) -> None:
    write_config('[catalogs.prod]\nkind = "unity"')
    told = hoodie("tables", status=1)
    assert "The catalog prod failed: Unity Catalog has no format" in told.stderr


def test_no_table_has_a_name(hoodie, monkeypatch, tmp_path) -> None:
    monkeypatch.delenv("HOODIE_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert f"Names go into {tmp_path}/hoodie/config.toml" in hoodie("tables").stderr


def test_shells_complete_names_and_folders(write_config, tmp_path, monkeypatch) -> None:
    write_config('[tables.trips]\npath = "/x"\n[catalogs.tower]\nkind = "hive"')
    (tmp_path / "trees" / "oak").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert complete_table("t") == ["trips", "tower:", "trees/"]
    assert complete_table("trees/") == ["trees/oak/"]
    assert complete_table("none/x") == []
    write_config("[tables")
    assert complete_table("t") == ["trees/"]


def test_completion_can_be_installed(hoodie) -> None:
    assert "--show-completion" in hoodie("--help").stdout
