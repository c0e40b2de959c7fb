"""Every spelling of an option ends in the same configuration."""

from __future__ import annotations

from typing import Any

import pytest

from hoodie_storage import PathError
from hoodie_storage.options import make_fsspec_options

ENDPOINT = "http://minio:9000"
SPELLINGS: dict[str, dict[str, Any]] = {
    "fsspec": {
        "key": "K",
        "secret": "S",
        "token": "T",
        "endpoint_url": ENDPOINT,
        "client_kwargs": {"region_name": "R"},
    },
    "fsspec, all for the client": {
        "client_kwargs": {
            "aws_access_key_id": "K",
            "aws_secret_access_key": "S",
            "aws_session_token": "T",
            "endpoint_url": ENDPOINT,
            "region_name": "R",
        },
    },
    "as text": {
        "key": "K",
        "secret": "S",
        "token": "T",
        "client_kwargs": f'{{"endpoint_url": "{ENDPOINT}", "region_name": "R"}}',
    },
    "environment style": {
        "AWS_ACCESS_KEY_ID": "K",
        "AWS_SECRET_ACCESS_KEY": "S",
        "AWS_SESSION_TOKEN": "T",
        "AWS_ENDPOINT_URL": ENDPOINT,
        "AWS_REGION": "R",
        "AWS_ALLOW_HTTP": "true",
    },
    "environment style, S3's own endpoint": {
        "AWS_ACCESS_KEY_ID": "K",
        "AWS_SECRET_ACCESS_KEY": "S",
        "AWS_SESSION_TOKEN": "T",
        "AWS_ENDPOINT_URL": "http://other",
        "AWS_ENDPOINT_URL_S3": ENDPOINT,
        "AWS_DEFAULT_REGION": "R",
    },
    "delta-rs": {
        "aws_access_key_id": "K",
        "aws_secret_access_key": "S",
        "aws_session_token": "T",
        "aws_endpoint": ENDPOINT,
        "aws_region": "R",
        "aws_allow_http": True,
    },
    "obstore": {
        "access_key_id": "K",
        "secret_access_key": "S",
        "session_token": "T",
        "endpoint": ENDPOINT,
        "region": "R",
    },
    "pyiceberg": {
        "s3.access-key-id": "K",
        "s3.secret-access-key": "S",
        "s3.session-token": "T",
        "s3.endpoint": ENDPOINT,
        "s3.region": "R",
    },
    "hadoop": {
        "fs.s3a.access.key": "K",
        "fs.s3a.secret.key": "S",
        "fs.s3a.session.token": "T",
        "fs.s3a.endpoint": "minio:9000",
        "fs.s3a.connection.ssl.enabled": "false",
        "fs.s3a.endpoint.region": "R",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.impl": "ignored",
    },
    "spark": {
        "spark.hadoop.fs.s3a.access.key": "K",
        "spark.hadoop.fs.s3a.secret.key": "S",
        "spark.hadoop.fs.s3a.session.token": "T",
        "spark.hadoop.fs.s3a.endpoint": ENDPOINT,
        "spark.hadoop.fs.s3a.endpoint.region": "R",
    },
    "hadoop, for the bucket": {
        "fs.s3a.access.key": "other",
        "fs.s3a.bucket.b.access.key": "K",
        "fs.s3a.bucket.b.secret.key": "S",
        "fs.s3a.bucket.c.secret.key": "other",
        "fs.s3a.bucket.b.session.token": "T",
        "fs.s3a.bucket.b.endpoint": ENDPOINT,
        "fs.s3a.endpoint.region": "R",
    },
}


def mapped(options: dict[str, Any], environment: dict[str, str] | None = None) -> dict[str, Any]:
    return make_fsspec_options("s3", options, environment or {}, "b")


@pytest.mark.parametrize("options", SPELLINGS.values(), ids=SPELLINGS.keys())
def test_spellings(options: dict[str, Any]) -> None:
    found = mapped(options)
    client = {**found.pop("client_kwargs")}
    config = found.pop("config_kwargs")
    for name, long in (
        ("key", "aws_access_key_id"),
        ("secret", "aws_secret_access_key"),
        ("token", "aws_session_token"),
    ):
        client.setdefault(long, found.pop(name, None))
    assert client == {
        "aws_access_key_id": "K",
        "aws_secret_access_key": "S",
        "aws_session_token": "T",
        "endpoint_url": ENDPOINT,
        "region_name": "R",
    }
    assert found == {"use_listings_cache": False}
    assert config["s3"] == {"addressing_style": "path"}
    assert config["connect_timeout"] <= 10
    assert config["read_timeout"] <= 30
    assert config["retries"]["total_max_attempts"] == 1


def test_nothing_given() -> None:
    found = mapped({})
    assert found["client_kwargs"] == {}
    assert "s3" not in found["config_kwargs"]
    assert "key" not in found


def test_precedence() -> None:
    environment = {"AWS_ENDPOINT_URL": "http://env", "AWS_REGION": "env"}
    assert mapped({}, environment)["client_kwargs"] == {"endpoint_url": "http://env", "region_name": "env"}
    hadoop = {"fs.s3a.endpoint": "http://hadoop", "fs.s3a.access.key": "hadoop"}
    assert mapped(hadoop, environment)["client_kwargs"] == {"endpoint_url": "http://hadoop", "region_name": "env"}
    aws = {**hadoop, "AWS_ENDPOINT_URL": "http://aws", "AWS_ACCESS_KEY_ID": "aws"}
    assert mapped(aws, environment)["client_kwargs"]["endpoint_url"] == "http://aws"
    assert mapped(aws, environment)["key"] == "aws"
    own = {**aws, "endpoint_url": "http://own", "client_kwargs": {"endpoint_url": "http://client"}, "key": "own"}
    assert mapped(own, environment)["client_kwargs"]["endpoint_url"] == "http://own"
    assert mapped(own, environment)["key"] == "own"


def test_keys_in_the_environment_are_left_to_botocore() -> None:
    found = mapped({}, {"AWS_ACCESS_KEY_ID": "K", "AWS_SECRET_ACCESS_KEY": "S"})
    assert "K" not in str(found)


def test_an_endpoint_without_scheme() -> None:
    for options, scheme in (({}, "https"), ({"use_ssl": "false"}, "http"), ({"AWS_ALLOW_HTTP": "1"}, "http")):
        assert mapped({**options, "endpoint_url": "host:1"})["client_kwargs"]["endpoint_url"] == f"{scheme}://host:1"
    for host in ("localhost:1", "127.0.0.1:1", "[::1]:1"):
        assert mapped({"endpoint_url": host})["client_kwargs"]["endpoint_url"] == f"http://{host}"
    secure = {"endpoint_url": "localhost:1", "fs.s3a.connection.ssl.enabled": "true"}
    assert mapped(secure)["client_kwargs"]["endpoint_url"] == "https://localhost:1"


@pytest.mark.parametrize(
    ("options", "style"),
    [
        ({"endpoint_url": "https://s3.eu-west-1.amazonaws.com"}, None),
        ({"endpoint_url": "http://127.0.0.1:9000"}, "path"),
        ({"endpoint_url": ENDPOINT, "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "true"}, "virtual"),
        ({"endpoint_url": ENDPOINT, "fs.s3a.path.style.access": "false"}, "virtual"),
        ({"endpoint_url": ENDPOINT, "config_kwargs": {"s3": {"addressing_style": "auto"}}}, "auto"),
        ({"fs.s3a.path.style.access": "true"}, "path"),
    ],
)
def test_addressing_style(options: dict[str, Any], style: str | None) -> None:
    assert mapped(options)["config_kwargs"].get("s3", {}).get("addressing_style") == style


def test_what_the_user_configures_stays() -> None:
    own = {"connect_timeout": 1, "read_timeout": 2, "retries": {"max_attempts": 9}, "signature_version": "s3v4"}
    assert mapped({"config_kwargs": own})["config_kwargs"].items() >= own.items()
    assert own == {"connect_timeout": 1, "read_timeout": 2, "retries": {"max_attempts": 9}, "signature_version": "s3v4"}


def test_unknown_options_pass_through() -> None:
    assert (
        mapped({"s3_additional_kwargs": {"ACL": "x"}, "max_concurrency": "4", "anon": "true", "profile": "p"}).items()
        >= {
            "s3_additional_kwargs": {"ACL": "x"},
            "max_concurrency": 4,
            "anon": True,
            "profile": "p",
        }.items()
    )
    assert make_fsspec_options("gs", {"project": "p", "token": "t"}, {}) == {
        "project": "p",
        "token": "t",
        "use_listings_cache": False,
    }


def test_anonymous_access() -> None:
    provider = "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
    for options in ({"AWS_SKIP_SIGNATURE": "true"}, {"fs.s3a.aws.credentials.provider": provider}, {"anon": True}):
        assert mapped(options)["anon"] is True


@pytest.mark.parametrize("name", ["client_kwargs", "max_concurrency"])
def test_unreadable_values_are_not_shown(name: str) -> None:
    with pytest.raises(PathError, match=name) as caught:
        mapped({name: "{secret"})
    assert "secret" not in str(caught.value)


def test_options_of_other_clouds_may_be_text() -> None:
    given = {"token": '{"type": "service_account"}', "requester_pays": "false", "timeout": "9", "project": None}
    assert make_fsspec_options("gs", given, {}) == {
        "token": {"type": "service_account"},
        "requester_pays": False,
        "timeout": 9,
        "use_listings_cache": False,
    }
    assert make_fsspec_options("abfs", {"anon": "false", "account_name": "a"}, {}) == {
        "anon": False,
        "account_name": "a",
        "use_listings_cache": False,
    }
    with pytest.raises(PathError, match="'token' is not JSON"):
        make_fsspec_options("gs", {"token": "{secret"}, {})
