"""Storage options: maps every spelling that users know to the arguments of fsspec's file system.

For S3, from strongest to weakest:

1. fsspec's own names (``key``, ``secret``, ``token``, ``endpoint_url``, ``client_kwargs``, ``config_kwargs``, ...);
2. names as in delta-rs, obstore and boto3: ``AWS_ACCESS_KEY_ID``, ``aws_region``, ``AWS_ENDPOINT_URL``, ...; as in
   PyIceberg: ``s3.endpoint``, ...;
3. Hadoop's ``fs.s3a.*``, with or without ``spark.hadoop.`` before it; options of one bucket
   (``fs.s3a.bucket.NAME.*``) take precedence;
4. the environment: this module reads endpoint and region. botocore reads keys, profiles and roles, so that it can
   refresh them, and they are never part of a pickled store.

Options of other spellings, and options of other stores, are passed on unchanged. Values may be text ("true", "10",
JSON), because Spark and the command line pass text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from hoodie_storage.errors import PathError

CONNECT_TIMEOUT = 10
READ_TIMEOUT = 30
_CONNECTIONS = 32

_AWS = {
    "access_key_id": "key",
    "secret_access_key": "secret",
    "session_token": "token",
    "token": "token",
    "region": "region",
    "default_region": "region",
    "endpoint_url_s3": "endpoint_url",
    "endpoint_url": "endpoint_url",
    "endpoint": "endpoint_url",
    "profile": "profile",
    "allow_http": "allow_http",
    "virtual_hosted_style_request": "virtual_hosted",
    "skip_signature": "anon",
    "request_payer": "requester_pays",
}
_CLIENT_KEYS = {"key": "aws_access_key_id", "secret": "aws_secret_access_key", "token": "aws_session_token"}
# PyIceberg's names, and obstore's without their prefix.
_UNPREFIXED = {
    "s3.access-key-id": "key",
    "s3.secret-access-key": "secret",
    "s3.session-token": "token",
    "s3.region": "region",
    "s3.endpoint": "endpoint_url",
    "s3.anonymous": "anon",
    "s3.force-virtual-addressing": "virtual_hosted",
    "access_key_id": "key",
    "secret_access_key": "secret",
    "session_token": "token",
    "region": "region",
    "endpoint": "endpoint_url",
    "allow_http": "allow_http",
    "virtual_hosted_style_request": "virtual_hosted",
    "skip_signature": "anon",
}
_HADOOP = {
    "access.key": "key",
    "secret.key": "secret",
    "session.token": "token",
    "endpoint": "endpoint_url",
    "endpoint.region": "region",
    "path.style.access": "path_style",
    "connection.ssl.enabled": "ssl",
}
_HADOOP_PREFIXES = ("fs.s3a.", "fs.s3.", "fs.s3n.")
_ANONYMOUS_PROVIDER = "AnonymousAWSCredentialsProvider"
_ENVIRONMENT = {
    "AWS_ENDPOINT_URL_S3": "endpoint_url",
    "AWS_ENDPOINT_URL": "endpoint_url",
    "AWS_REGION": "region",
    "AWS_DEFAULT_REGION": "region",
    "AWS_ALLOW_HTTP": "allow_http",
}
_FLAGS = frozenset(
    {"anon", "use_ssl", "requester_pays", "version_aware", "cache_regions", "default_fill_cache", "fixed_upload_size",
     "local_expiry_check", "use_listings_cache", "assume_container_exists", "check_connection"}
)  # fmt: skip
_NUMBERS = frozenset({"max_concurrency", "default_block_size", "timeout", "connection_timeout", "read_timeout"})
_MAPPINGS = frozenset({"client_kwargs", "config_kwargs", "s3_additional_kwargs", "session_kwargs"})
_CLOUDS = frozenset({"gs", "abfs", "abfss", "az"})
# Options of other libraries that have no effect here.
_IGNORED = frozenset({"protocol", "aws_s3_allow_unsafe_rename", "aws_conditional_put", "aws_ec2_metadata_disabled"})


def make_fsspec_options(
    protocol: str, options: Mapping[str, Any], environment: Mapping[str, str], bucket: str = ""
) -> dict[str, Any]:
    """Return the arguments of the file system that fsspec calls ``protocol``; ``bucket`` is for options of one bucket.

    Raises PathError if the value of an option cannot be parsed; the message does not show it.
    """
    if protocol == "s3":
        return _make_s3_options(options, environment, bucket)
    given = {name: value for name, value in options.items() if name != "protocol"}
    if protocol in _CLOUDS:
        given = {name: _parse_value(name, value) for name, value in given.items() if value is not None}
        token = given.get("token")
        if isinstance(token, str) and token.lstrip().startswith("{"):
            given["token"] = _parse_json("token", token)  # the content of a service account's key file
    given["use_listings_cache"] = False
    return given


def list_spellings() -> list[str]:
    """Return the names of other libraries that are understood for S3."""
    return [*(f"aws_{each}" for each in _AWS), *_UNPREFIXED, *(f"fs.s3a.{each}" for each in _HADOOP)]


def _make_s3_options(options: Mapping[str, Any], environment: Mapping[str, str], bucket: str) -> dict[str, Any]:
    named, passed = _sort_options(options, environment, bucket)
    client = dict(passed.pop("client_kwargs", None) or {})
    config = dict(passed.pop("config_kwargs", None) or {})
    for ours, theirs in _CLIENT_KEYS.items():
        if passed.get(ours) is not None:
            client.pop(theirs, None)
        elif theirs not in client and ours in named:
            passed[ours] = named[ours]
    for name in ("anon", "requester_pays"):
        if name in named:
            passed.setdefault(name, _parse_flag(named[name]))
    if "profile" in named:
        passed.setdefault("profile", named["profile"])
    region = client.get("region_name") or passed.pop("region_name", None)
    client["region_name"] = region or named.get("region")
    endpoint = passed.pop("endpoint_url", None) or client.get("endpoint_url") or named.get("endpoint_url")
    client["endpoint_url"] = _complete_endpoint(endpoint, named, passed) if endpoint else None
    _configure(config, named, client["endpoint_url"])
    return {
        **passed,
        "client_kwargs": {name: value for name, value in client.items() if value is not None},
        "config_kwargs": config,
        "use_listings_cache": False,
    }


def _sort_options(
    options: Mapping[str, Any], environment: Mapping[str, str], bucket: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split options into settings with names of other libraries, and fsspec's own options."""
    layers: list[dict[str, Any]] = [{}, {}, {}, {}]
    passed: dict[str, Any] = {}
    for option, value in options.items():
        if value is None or option.lower() in _IGNORED:
            continue
        lower = option.lower().removeprefix("spark.hadoop.")
        if lower.startswith(_HADOOP_PREFIXES):
            _take_hadoop_option(lower, value, bucket.lower(), layers[2], layers[1])
        elif lower.startswith("aws_") and lower[4:] in _AWS:
            name = _AWS[lower[4:]]
            if lower == "aws_endpoint_url_s3" or name not in layers[0]:
                layers[0][name] = value
        elif lower in _UNPREFIXED:
            layers[0].setdefault(_UNPREFIXED[lower], value)
        else:
            passed[option] = _parse_value(option, value)
    for variable, name in _ENVIRONMENT.items():
        if environment.get(variable):
            layers[3].setdefault(name, environment[variable])
    return {name: value for layer in reversed(layers) for name, value in layer.items()}, passed


def _take_hadoop_option(key: str, value: Any, bucket: str, general: dict[str, Any], own: dict[str, Any]) -> None:
    """Add a Hadoop option to its layer; ignore options that have no effect here."""
    rest = key.split(".", 2)[2]
    into = general
    if rest.startswith("bucket."):
        if not bucket or not rest.startswith(f"bucket.{bucket}."):
            return
        rest, into = rest.removeprefix(f"bucket.{bucket}."), own
    if rest in _HADOOP:
        into[_HADOOP[rest]] = value
    elif rest == "aws.credentials.provider" and _ANONYMOUS_PROVIDER in str(value):
        into["anon"] = True


def _complete_endpoint(endpoint: str, named: Mapping[str, Any], passed: Mapping[str, Any]) -> str:
    """Return the endpoint with a scheme: http for a server on this machine, unless the options say otherwise."""
    endpoint = str(endpoint).strip()
    if "://" in endpoint:
        return endpoint
    secure = _parse_flag(named.get("ssl", not _is_on_this_machine(endpoint)))
    secure = secure and _parse_flag(passed.get("use_ssl", True)) and not _parse_flag(named.get("allow_http", False))
    return f"{'https' if secure else 'http'}://{endpoint}"


def _is_on_this_machine(endpoint: str) -> bool:
    host = urlsplit(f"//{endpoint}").hostname or ""
    return host in {"localhost", "::1"} or host.startswith("127.")


def _configure(config: dict[str, Any], named: Mapping[str, Any], endpoint: str | None) -> None:
    """Add this package's settings to botocore's configuration; the user's settings stay."""
    config.setdefault("connect_timeout", CONNECT_TIMEOUT)
    config.setdefault("read_timeout", READ_TIMEOUT)
    config.setdefault("max_pool_connections", _CONNECTIONS)
    # No retries by botocore: this package retries, and treats reads and writes differently.
    config.setdefault("retries", {"total_max_attempts": 1, "mode": "standard"})
    s3 = dict(config.get("s3") or {})
    style = _choose_addressing_style(named, endpoint)
    if style and "addressing_style" not in s3:
        config["s3"] = {**s3, "addressing_style": style}


def _choose_addressing_style(named: Mapping[str, Any], endpoint: str | None) -> str | None:
    """Return the addressing style: "path" for stores other than Amazon's: few take buckets in host names."""
    if "path_style" in named:
        return "path" if _parse_flag(named["path_style"]) else "virtual"
    if "virtual_hosted" in named:
        return "virtual" if _parse_flag(named["virtual_hosted"]) else "path"
    host = urlsplit(endpoint).hostname if endpoint else None
    return "path" if host and not host.endswith(("amazonaws.com", "amazonaws.com.cn")) else None


def _parse_value(option: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if option in _FLAGS:
        return _parse_flag(value)
    if option in _MAPPINGS:
        return _parse_json(option, value)
    if option not in _NUMBERS:
        return value
    try:
        return int(value)
    except ValueError:
        raise PathError(f"the storage option {option!r} is not a number") from None


def _parse_json(option: str, value: str) -> Any:
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise PathError(f"the storage option {option!r} is not JSON") from None


def _parse_flag(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip().lower() in {"true", "1", "yes", "on", "requester"}
    return bool(value)
