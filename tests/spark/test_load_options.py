"""Options in the form in which Spark passes them: lower-case names, text values."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from hoodie_py import HoodieWarning, InvalidQueryError
from hoodie_py.spark.load_options import LoadOptions, parse_columns, pick_s3_settings, read_s3_settings, to_option_texts

SESSION = {"spark.hadoop.fs.s3a.access.key": "session-key"}


def parse(session: dict[str, str] | None = None, **options: str) -> LoadOptions:
    return LoadOptions.parse(options, session or {})


def test_every_option_finds_its_place() -> None:
    options = LoadOptions.parse(
        {
            "path": "/t",
            "columns": "a, b",
            "as.of.instant": "20260101000000000",
            "timezone": "Europe/Berlin",
            "integrity": "strict",
            "batch_rows": "10",
            "memory_limit": "20",
            "hoodie.datasource.query.type": "read_optimized",
            "unheard.of": "x",
        },
        {},
    )
    assert options == LoadOptions(
        path="/t",
        columns=("a", "b"),
        as_of="20260101000000000",
        timezone="Europe/Berlin",
        integrity="strict",
        batch_rows=10,
        memory_limit=20,
        hoodie={
            "as.of.instant": "20260101000000000",
            "hoodie.datasource.query.type": "read_optimized",
            "unheard.of": "x",
        },
    )


def test_names_come_in_any_case() -> None:
    assert LoadOptions.parse({"PATH": "/t", "As.Of.Instant": "2026"}, {}).as_of == "2026"


@pytest.mark.parametrize("text", ['{"key": "k", "client_kwargs": {"endpoint_url": "http://x"}}', ""])
def test_storage_options_are_json(text: str) -> None:
    wanted = {"key": "k", "client_kwargs": {"endpoint_url": "http://x"}} if text else {}
    assert parse(path="/t", storage_options=text).storage_options == wanted


@pytest.mark.parametrize("uri", ["s3://b/t", "s3a://b/t", "S3N://b/t"])
def test_session_settings_serve_s3_tables_whose_load_names_no_others(uri: str) -> None:
    assert parse(SESSION, path=uri).storage_options == SESSION
    assert parse(SESSION, path=uri, storage_options='{"anon": true}').storage_options == {"anon": True}
    own = LoadOptions.parse({"path": uri, "fs.s3a.access.key": "own"}, SESSION)
    assert own.storage_options == {"fs.s3a.access.key": "own"}
    assert "fs.s3a.access.key" not in own.hoodie


@pytest.mark.parametrize("uri", ["/t", "file:///t", "memory://t", "gs://b/t"])
def test_session_settings_for_s3_do_not_reach_other_stores(uri: str) -> None:
    assert parse(SESSION, path=uri).storage_options == {}


def test_only_s3_settings_are_taken_over_from_the_session() -> None:
    pairs = [("spark.hadoop.fs.s3a.endpoint", "e"), ("spark.hadoop.fs.gs.x", "g"), ("spark.app.name", "n")]
    pairs.append(("spark.hadoop.fs.s3a.vectored.read.min.seek.size", "128K"))  # Spark 4 sets it by itself
    assert pick_s3_settings(pairs) == {"spark.hadoop.fs.s3a.endpoint": "e"}


class ConnectSession:
    """What a Connect session shows of its settings: no credentials, but whether there are any."""

    __module__ = "pyspark.sql.connect.session"

    def __init__(self, settings: dict[str, str]) -> None:
        self.conf = self
        self.settings = settings

    @property
    def getAll(self) -> dict[str, str]:
        return {name: value for name, value in self.settings.items() if not name.endswith((".key", ".token"))}

    def sql(self, text: str) -> SimpleNamespace:
        """Answer as Spark 4.3 does: a secret that is asked for by its name is "redacted" even if nobody has set it."""
        names = list(self.settings) if text == "SET" else [text.removeprefix("SET `").removesuffix("`")]
        return SimpleNamespace(collect=lambda: [{"key": name, "value": "*********(redacted)"} for name in names])


def test_credentials_that_a_connect_server_keeps_to_itself_are_a_warning() -> None:
    settings = {
        "spark.hadoop.fs.s3a.endpoint": "http://store",
        "spark.hadoop.fs.s3a.secret.key": "hunter2",
        "spark.hadoop.fs.s3a.bucket.lake.endpoint": "http://lake",
        "spark.hadoop.fs.s3a.bucket.lake.secret.key": "of the lake",
    }
    session = ConnectSession(settings)
    with pytest.warns(HoodieWarning, match="storage_options") as caught:
        assert read_s3_settings(session) == session.getAll
    named = [str(each.message).partition(" do not have ")[2].partition(":")[0] for each in caught]
    assert sorted(named) == sorted(settings.keys() - session.getAll)
    assert read_s3_settings(ConnectSession({"spark.app.name": "x"})) == {}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "No path"),
        ({"path": " "}, "No path"),
        ({"paths": '["/a", "/b"]'}, "Several paths"),
        ({"path": "/t", "storage_options": "secret-thing"}, "not a JSON object"),
        ({"path": "/t", "storage_options": '["secret-thing"]'}, "not a JSON object"),
        ({"path": "/t", "batch_rows": "many"}, "batch_rows cannot be 'many'"),
        ({"path": "/t", "colums": "a"}, "Did you mean 'columns'"),
        ({"path": "/t", "columns": '["a", 1]'}, "no list of names"),
    ],
)
def test_bad_options_say_what_to_do(options: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidQueryError) as caught:
        LoadOptions.parse(options, {})
    assert said in str(caught.value)
    assert "secret-thing" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "names"),
    [(None, None), ("  ", None), ("a", ("a",)), (" a ,b", ("a", "b")), ('["a,b", " c"]', ("a,b", " c"))],
)
def test_columns_are_a_list_with_commas_or_json(text: str | None, names: tuple[str, ...] | None) -> None:
    assert parse_columns(text) == names


def test_storage_options_are_not_shown() -> None:
    assert "hunter2" not in repr(parse(path="/t", storage_options='{"secret": "hunter2"}'))


def test_values_of_python_become_texts_and_none_is_no_option() -> None:
    given = {"Path": "/t", "timezone": None, "storage_options": {"anon": True}, "batch_rows": 5, "hoodie.x": True}
    said = {"path": "/t", "storage_options": '{"anon": true}', "batch_rows": "5", "hoodie.x": "true"}
    assert to_option_texts(given) == said
