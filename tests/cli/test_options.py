from __future__ import annotations

import pytest
import typer

from hoodie_py.cli.options import parse_storage_options


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([], {}),
        (["key=a", "secret=b=c"], {"key": "a", "secret": "b=c"}),
        (["anon=true", "use_ssl=false", "token=null"], {"anon": True, "use_ssl": False, "token": None}),
        (["secret=0123", "key="], {"secret": "0123", "key": ""}),
        (["client_kwargs.region_name=eu"], {"client_kwargs": {"region_name": "eu"}}),
        (["fs.s3a.endpoint=x", "s3.endpoint=y"], {"fs.s3a.endpoint": "x", "s3.endpoint": "y"}),
        (['config_kwargs={"retries": 3}', "config_kwargs.a=b"], {"config_kwargs": {"retries": 3, "a": "b"}}),
        (["client_kwargs.a=b", 'client_kwargs={"c": 1}'], {"client_kwargs": {"a": "b", "c": 1}}),
        (["key=a", "key=b"], {"key": "b"}),
    ],
)
def test_pairs_become_options(pairs: list[str], expected: dict[str, object]) -> None:
    assert parse_storage_options(pairs, None) == expected


def test_endpoint_url_joins_client_kwargs() -> None:
    options = parse_storage_options(["client_kwargs.region_name=eu"], "http://127.0.0.1:9000")
    assert options == {"client_kwargs": {"region_name": "eu", "endpoint_url": "http://127.0.0.1:9000"}}


@pytest.mark.parametrize(
    "pairs",
    [["novalue"], ["=x"], ["client_kwargs.=x"], ["a={broken"], ["client_kwargs=x", "client_kwargs.a=b"],
     ["client_kwargs.a=b", "client_kwargs=x"]],
)  # fmt: skip
def test_what_is_no_pair_is_wrong_usage(pairs: list[str]) -> None:
    with pytest.raises(typer.BadParameter):
        parse_storage_options(pairs, None)
