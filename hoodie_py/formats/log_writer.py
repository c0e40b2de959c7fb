"""Writes the blocks of log files (Hudi HoodieLogFormatWriter, log format version 1); ``log`` has the layout."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from hoodie_py.formats.log import LOG_FORMAT_VERSION, MAGIC, BlockType, HeaderKey

_NO_FOOTERS = struct.pack(">i", 0)


def encode_block(block_type: BlockType, headers: Mapping[HeaderKey, str], content: bytes) -> bytes:
    """Encode one block; a log file is blocks back to back.

    Args:
        block_type: type of the block.
        headers: usually INSTANT_TIME (the instant of the writing commit) and SCHEMA (the records' Avro schema as JSON,
            with the meta fields), in delete blocks too.
        content: the encoded records.
    """
    texts = [(key, text.encode()) for key, text in headers.items()]
    body = struct.pack(">iii", LOG_FORMAT_VERSION, block_type, len(texts))
    body += b"".join(struct.pack(">ii", key, len(text)) + text for key, text in texts)
    size = len(body) + 8 + len(content) + len(_NO_FOOTERS) + 8
    end = _NO_FOOTERS + struct.pack(">q", len(MAGIC) + size)
    return b"".join((MAGIC, struct.pack(">q", size), body, struct.pack(">q", len(content)), content, end))
