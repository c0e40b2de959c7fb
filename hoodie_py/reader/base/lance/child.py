"""The process that decodes Lance files: answers requests of ``process`` on its standard input.

The lance library checks little of a file. On a damaged page it may panic where no exception can be raised, or request
all memory; both end the process. So no other process imports it.

A request is a line of JSON. The answer is a sequence of frames: a letter, the length as eight bytes, the content.

    S   the schema of the file, or of the batches to come, as Arrow IPC
    B   a batch; the client answers "+" for the next one, and "." to end
    Z   the end
    E   the error as JSON, and the end
"""

from __future__ import annotations

import json
import os
import re
import resource
import select
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, BinaryIO

HEAD = struct.Struct("<cQ")
SCHEMA, BATCH, END, ERROR = b"S", b"B", b"Z", b"E"
MORE, ENOUGH = b"+", b"."

IDLE_SECONDS = 120
_SPARE_BYTES = 2 << 30  # for the library itself, and stacks of its threads
_LONGEST_ERROR = 300
_SOURCE_PLACE = re.compile(r",? ?/\S+\.rs:\d+(:\d+)?")  # where in the library's source an error comes from


def main(decoded_bytes: int) -> None:
    """Answer requests until standard input closes, or until no request comes for two minutes."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # the library prints to standard output, where answers go
    with suppress(ValueError, OSError):  # a limit that is lower stays
        resource.setrlimit(resource.RLIMIT_DATA, (decoded_bytes + _SPARE_BYTES,) * 2)
    requests = os.fdopen(0, "rb", buffering=0)
    while select.select([requests], [], [], IDLE_SECONDS)[0]:
        line = requests.readline()
        if not line:
            return
        _answer(json.loads(line), requests, answers)


def _answer(request: dict[str, Any], requests: BinaryIO, answers: BinaryIO) -> None:
    try:
        for kind, content in _decode(request):
            _write(answers, kind, content)
            if kind == BATCH and requests.read(1) != MORE:
                return
    except BrokenPipeError:
        sys.exit()
    except BaseException as error:  # a panic of the library is no Exception
        if isinstance(error, SystemExit | KeyboardInterrupt):
            raise
        text = _SOURCE_PLACE.sub("", str(error).partition("\n")[0])[:_LONGEST_ERROR]
        what = {"text": text or type(error).__name__, "missing": isinstance(error, ImportError)}
        _write(answers, ERROR, json.dumps(what).encode())
        return
    _write(answers, END, b"")


def _write(answers: BinaryIO, kind: bytes, content: Any) -> None:
    answers.write(HEAD.pack(kind, len(content)))
    answers.write(content)
    answers.flush()


def _decode(request: dict[str, Any]) -> Iterator[tuple[bytes, Any]]:
    from lance.file import LanceFileReader

    reader = LanceFileReader(request["path"], columns=request["columns"])
    if request["columns"] is None:
        yield SCHEMA, reader.metadata().schema.serialize()
        return
    batches = reader.read_range(
        request["start"], request["rows"], batch_size=request["batch_rows"], batch_readahead=1
    ).to_batches()
    yield SCHEMA, batches.schema.serialize()
    for batch in batches:
        batch.validate(full=True)
        yield BATCH, batch.serialize()
