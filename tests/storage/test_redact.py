"""Credentials appear nowhere that a person may look."""

from __future__ import annotations

import logging
import traceback
from typing import Any

import pytest

from hoodie_py.errors import HoodieError
from hoodie_py.files import TableFiles
from hoodie_storage import StorageFault, Store, open_store
from hoodie_storage.redact import Redactor, redact_uri
from tests.storage.faults import QUICK, faulty

CANARY = "c4nary-53cr3t/value+x"
NAMES = [
    "key",
    "secret",
    "token",
    "password",
    "AWS_SECRET_ACCESS_KEY",
    "aws_session_token",
    "fs.s3a.secret.key",
    "s3.secret-access-key",
    "account_key",
    "sas_token",
    "connection_string",
    "api_key",
    "fs.s3a.bucket.b.secret.key",
]


def everything(thing: Any, error: BaseException | None) -> str:
    """All texts that a user, a log or a notebook would show."""
    texts = [repr(thing), str(thing), f"{thing}", getattr(thing, "uri", "")]
    while error is not None:
        texts += [repr(error), str(error), repr(error.args), "".join(traceback.format_exception(error))]
        texts += [str(getattr(error, name, "")) for name in ("where", "hint", "path", "reason", "details")]
        error = error.__cause__ or error.__context__
    return "\n".join(texts)


@pytest.mark.parametrize("name", NAMES)
def test_the_canary_stays_hidden(name: str) -> None:
    of_other_clouds = name in {"account_key", "sas_token", "connection_string", "api_key"}  # S3 refuses their names
    options = {name: CANARY, "endpoint_url": "http://127.0.0.1:1"}
    store = open_store("memory://t" if of_other_clouds else "s3://b/t", options)
    for text in (f"the key {CANARY} is not known", f"GET http://x/?X-Amz-Credential={CANARY}"):
        shaky, _ = faulty(store, before=[ValueError(text)])
        with pytest.raises(StorageFault) as caught:
            shaky.read("a")
        assert CANARY not in everything(shaky, caught.value)
        assert "***" in str(caught.value)
        with pytest.raises(HoodieError) as raised:
            TableFiles(faulty(store, before=[ValueError(text)])[0]).read("a")
        assert CANARY not in everything(TableFiles(store), raised.value)


def test_a_secret_deep_in_the_chain_stays_hidden() -> None:
    store = open_store("s3://b/t", {"secret": CANARY, "endpoint_url": "http://127.0.0.1:1"})
    try:
        try:
            raise KeyError(CANARY)
        except KeyError:
            raise ValueError("harmless")  # noqa: B904 - the context is the point
    except ValueError as error:
        problem = error
    shaky, _ = faulty(store, before=[problem])
    with pytest.raises(StorageFault, match="harmless") as caught:
        shaky.read("a")
    assert CANARY not in everything(shaky, caught.value)


def test_nested_options_and_real_failures(caplog: pytest.LogCaptureFixture) -> None:
    options = {
        "client_kwargs": {
            "aws_secret_access_key": CANARY,
            "aws_access_key_id": CANARY,
            "endpoint_url": "http://127.0.0.1:1",
        }
    }
    store = open_store("s3://b/t", options)
    store = Store(store._location, store._options, retries=QUICK)
    with caplog.at_level(logging.INFO), pytest.raises(StorageFault) as caught:
        store.read("a")
    assert CANARY not in everything(store, caught.value) + caplog.text


def test_options_that_do_not_fit() -> None:
    for options in ({"no_such_option": CANARY}, {"client_kwargs": {"aws_session_token": CANARY, "nonsense": CANARY}}):
        with pytest.raises(StorageFault) as caught:
            open_store("s3://b/t", {"endpoint_url": "http://127.0.0.1:1", **options}).read("a")
        assert CANARY not in everything(None, caught.value)


@pytest.mark.parametrize("uri", [f"ftp://me:{CANARY.replace('/', '-')}@host/a", f"https://host/a?sig={CANARY}"])
def test_secrets_in_uris(uri: str) -> None:
    store = open_store(uri)
    hidden = CANARY.replace("/", "-") if uri.startswith("ftp") else CANARY
    assert hidden not in everything(store, None)
    assert hidden not in store._redact(f"login with {hidden} failed at {uri}")


def test_keys_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", CANARY)
    assert Redactor({})(f"bad {CANARY}") == "bad ***"


def test_what_is_no_secret_stays_readable() -> None:
    redact = Redactor(
        {"key": "test", "endpoint_url": "http://minio:9000", "client_kwargs": {"region_name": "eu-west-1"}}
    )
    text = "no test at http://minio:9000 in eu-west-1"
    assert redact(text) == text
    assert repr(redact) == "Redactor()"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see https://u:p@h/x and s3://b/c", "see https://***@h/x and s3://b/c"),
        ("'https://h/x?a=b&c=d', and", "'https://h/x?***', and"),
        ("abfss://box@account/x", "abfss://box@account/x"),
        ("mail me@here.example", "mail me@here.example"),
    ],
)
def test_uris_in_texts(text: str, shown: str) -> None:
    assert redact_uri(text) == shown


def test_the_key_in_a_connection_string_is_hidden() -> None:
    text = "DefaultEndpointsProtocol=https;AccountName=lake;AccountKey=c2VjcmV0LWtleQ==;EndpointSuffix=x"
    redact = Redactor({"connection_string": text})
    assert redact(f"signed with c2VjcmV0LWtleQ== by {text}") == "signed with *** by ***"
