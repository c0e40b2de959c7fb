"""Classifies the exceptions of stores.

Stores report the same failure in many ways: an ``OSError`` with an errno, a botocore error with an HTTP status inside,
a time-out of one of three kinds. This module decides what the user is told, whether a read is tried again, and whether
a failed write may have happened.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import Any

from hoodie_storage.errors import AccessDeniedError, NotFoundError, ShortReadError, StorageFault, TimeoutFault
from hoodie_storage.redact import Redactor

_NO_CREDENTIALS = frozenset(
    {
        "NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError", "TokenRetrievalError",
        "GoogleAuthError", "ClientAuthenticationError",
    }
)  # fmt: skip
_UNKNOWN_USER = frozenset({"InvalidAccessKeyId", "XAdminUserNotFound"})  # versitygw sends the second with status 404
_UNREACHABLE = frozenset(
    {
        "EndpointConnectionError", "ConnectTimeoutError", "ClientConnectorError", "ProxyConnectionError",
        "ServiceRequestTimeoutError",
    }
)  # fmt: skip
_BROKEN_OFF = frozenset(
    {
        "HTTPClientError", "ConnectionError", "ConnectionClosedError", "IncompleteRead", "IncompleteReadError",
        "ResponseParserError", "ResponseStreamingError", "ClientPayloadError", "ClientConnectionError",
        "ServerDisconnectedError", "ProtocolError", "ServiceResponseError", "ChecksumError",
        "ServiceRequestError",  # Azure's for every failure of its client; its cause is more specific
    }
)  # fmt: skip
_TIMED_OUT = frozenset({"ReadTimeoutError", "ConnectTimeoutError", "ServerTimeoutError", "ServiceResponseTimeoutError"})
_REFUSED_STATUS = frozenset({429, 503})
_PASSING_STATUS = frozenset({408, 429, 500, 502, 503, 504})
_PASSING_ERRNO = frozenset({errno.EAGAIN, errno.EINTR, errno.ETIMEDOUT, errno.ECONNRESET})
# Errors of this module carry a status that no server sent: the answer could not be parsed.
_PARSER = "aiohttp.http_exceptions"
_FORBIDDEN = "Forbidden:"  # how gcsfs begins an OSError for status 403
_DEEPEST = 8
_LONGEST = 1000

_CREDENTIALS_HINT = (
    "Check the credentials and their permissions: the storage options key, secret and token, or the environment "
    "variables AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN."
)
_GOOGLE_CREDENTIALS_HINT = (
    "Check the credentials and their permissions: the storage option token, or the environment variable "
    "GOOGLE_APPLICATION_CREDENTIALS, or `gcloud auth application-default login`."
)
_AZURE_CREDENTIALS_HINT = (
    "Check the credentials and their permissions: the storage options account_name and account_key, sas_token, "
    "connection_string, or tenant_id, client_id and client_secret, or the environment variables AZURE_STORAGE_*. With "
    "anon=False and none of these Azure's own search for credentials is used."
)
_ENDPOINT_HINT = (
    "Check the address: the storage option endpoint_url, or the environment variable AWS_ENDPOINT_URL, and whether a "
    "server listens there."
)
_GOOGLE_ENDPOINT_HINT = (
    "Check the address: the storage option endpoint_url, or the environment variable STORAGE_EMULATOR_HOST."
)
_AZURE_ENDPOINT_HINT = "Check the address: the storage options account_name, account_host and connection_string."
_REGION_HINT = (
    "The bucket is in another region: name it in the storage option client_kwargs={'region_name': ...}, or in the "
    "environment variable AWS_REGION."
)
_LOCAL_HINT = "Check the owner and mode of the file and its folders."
_CREDENTIALS_HINTS = {
    "file": _LOCAL_HINT,
    "gs": _GOOGLE_CREDENTIALS_HINT,
    **dict.fromkeys(("abfs", "abfss", "az"), _AZURE_CREDENTIALS_HINT),
}
_ENDPOINT_HINTS = {"gs": _GOOGLE_ENDPOINT_HINT, **dict.fromkeys(("abfs", "abfss", "az"), _AZURE_ENDPOINT_HINT)}


def iterate_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and its causes."""
    seen: BaseException | None = error
    for _ in range(_DEEPEST):
        if seen is None:
            return
        yield seen
        seen = seen.__cause__


def find_http_status(error: BaseException) -> int | None:
    """Return the HTTP status of the answer behind an exception; None without an answer."""
    for each in iterate_causes(error):
        if type(each).__module__.startswith(_PARSER):
            return None
        response = getattr(each, "response", None)
        found: list[Any] = [getattr(each, name, None) for name in ("status", "status_code", "code")]
        found.append(getattr(response, "status_code", None))
        if isinstance(response, dict):
            found.insert(0, response.get("ResponseMetadata", {}).get("HTTPStatusCode"))
        for status in found:
            if isinstance(status, int) and 100 <= status < 600:
                return status
    return None


def _find_error_code(error: BaseException) -> str | None:
    """Return the store's error code in the answer; None without one."""
    for each in iterate_causes(error):
        response = getattr(each, "response", None)
        if isinstance(response, dict):
            code = response.get("Error", {}).get("Code")
            return code if isinstance(code, str) else None
    return None


def is_timeout(error: BaseException) -> bool:
    """Say whether the request timed out."""
    return any(isinstance(each, TimeoutError) or _is_one_of(each, _TIMED_OUT) for each in iterate_causes(error))


def is_unreachable(error: BaseException) -> bool:
    """Say whether no connection was made, so that the store never got the request."""
    return any(
        isinstance(each, ConnectionRefusedError) or _is_one_of(each, _UNREACHABLE) for each in iterate_causes(error)
    )


def is_refusal(error: BaseException) -> bool:
    """Say whether the store certainly did nothing and a retry may help: it was busy, or not reached.

    Also true if the request was never sent because Google's login failed temporarily (``retryable``).
    """
    status = find_http_status(error)
    if status:
        return status in _REFUSED_STATUS
    return is_unreachable(error) or any(getattr(each, "retryable", False) is True for each in iterate_causes(error))


def is_passing(error: BaseException) -> bool:
    """Say whether a retry may help."""
    status = find_http_status(error)
    if status:
        return status in _PASSING_STATUS
    if isinstance(error, StorageFault):
        return False
    return (
        is_timeout(error)
        or is_refusal(error)
        or any(
            isinstance(each, ConnectionError)
            or _is_one_of(each, _BROKEN_OFF)
            or (isinstance(each, OSError) and each.errno in _PASSING_ERRNO)
            for each in iterate_causes(error)
        )
    )


def may_have_happened(error: BaseException) -> bool:
    """Say whether a write that ended with this exception may have happened."""
    status = find_http_status(error)
    if status:
        return status >= 500 and status not in _REFUSED_STATUS
    if is_refusal(error):
        return False
    return is_passing(error)


def make_fault(error: Exception, operation: str, path: str, redact: Redactor, protocol: str = "s3") -> StorageFault:
    """Return the fault to raise instead of an exception; ``protocol`` is fsspec's name of the store, for the hints.

    The exception becomes the fault's cause, unless a text in its traceback contains a secret.
    """
    if isinstance(error, StorageFault):
        error.operation = error.operation or operation
        error.path = error.path or path
        return error
    kind, hint = _choose_fault(error, protocol)
    fault = kind(redact(_describe(error, kind)), operation=operation, path=path, hint=hint)
    if all(redact(str(each)) == str(each) for each in _iterate_printed(error)):
        fault.__cause__ = error
    return fault


def _iterate_printed(error: BaseException) -> Iterator[BaseException]:
    """Yield all exceptions that the traceback of this one prints."""
    waiting: list[BaseException | None] = [error]
    for _ in range(_DEEPEST**2):
        if not waiting:
            return
        each = waiting.pop()
        if each is not None:
            yield each
            waiting += [each.__cause__, each.__context__]


def _choose_fault(error: Exception, protocol: str) -> tuple[type[StorageFault], str | None]:
    status = find_http_status(error)
    if (
        status in {401, 403}
        or isinstance(error, PermissionError)
        or any(_is_one_of(each, _NO_CREDENTIALS) for each in iterate_causes(error))
        or _find_error_code(error) in _UNKNOWN_USER
        or (protocol == "gs" and str(error).startswith(_FORBIDDEN))
    ):
        return AccessDeniedError, _CREDENTIALS_HINTS.get(protocol, _CREDENTIALS_HINT)
    if status == 404 or isinstance(error, FileNotFoundError | NotADirectoryError):
        return NotFoundError, None
    if protocol == "s3" and (status == 301 or (status == 400 and "region" in str(error))):
        return StorageFault, _REGION_HINT
    if status == 416 or isinstance(error, EOFError):
        return ShortReadError, None
    if is_unreachable(error):
        return StorageFault, _ENDPOINT_HINTS.get(protocol, _ENDPOINT_HINT)
    if is_timeout(error):
        return TimeoutFault, None
    return StorageFault, None


def _describe(error: Exception, kind: type[StorageFault]) -> str:
    if kind is NotFoundError:
        text = "no such file or folder"
        return f"{text} ({error})" if find_http_status(error) else text
    if kind is ShortReadError:
        return "the file is shorter than expected"
    text = str(error).strip()[:_LONGEST] or type(error).__name__
    status = find_http_status(error)
    return f"{text} (HTTP {status})" if status else text


def _is_one_of(error: BaseException, names: frozenset[str]) -> bool:
    return any(each.__name__ in names for each in type(error).__mro__)
