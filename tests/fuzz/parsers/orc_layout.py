"""Layouts of ORC files, footers of stripes, and compressed parts."""

from __future__ import annotations

import io
from contextlib import suppress

import pyarrow as pa
from pyarrow import orc

from hoodie_py.errors import HoodieError
from hoodie_py.formats.orc import decompress, decompress_lz4, read_stripe_footer, read_tail

_MOST = 1 << 16


def make_file(codec: str = "uncompressed", rows: int = 3) -> bytes:
    """A small file with times and nested columns."""
    table = pa.table({
        "n": pa.array(range(rows), pa.int64()),
        "t": pa.array([None] * rows, pa.timestamp("ns")),
        "d": pa.array([None] * rows, pa.decimal128(12, 2)),
        "l": pa.array([["a", None]] * rows, pa.list_(pa.string())),
    })  # fmt: skip
    target = io.BytesIO()
    orc.write_table(table, target, compression=codec)
    return target.getvalue()


def seeds() -> list[bytes]:
    """Files of all codecs."""
    return [make_file(codec) for codec in ("uncompressed", "zlib", "snappy", "lz4", "zstd")] + [make_file(rows=0)]


def parse(data: bytes) -> None:
    """Read the layout from a short tail first, then the stripes' footers."""
    with suppress(HoodieError):
        tail = data[-1:]
        layout = read_tail(tail, len(data))
        while isinstance(layout, int):
            assert layout > len(tail)
            tail = data[-layout:]
            layout = read_tail(tail, len(data))
        for stripe in layout.stripes:
            footer = read_stripe_footer(data[stripe.data_end : stripe.end], layout)
            layout.find_streams(footer, stripe, layout.types[0].names)
    with suppress(HoodieError):
        assert len(decompress_lz4(data, _MOST)) <= _MOST
    for codec in ("zlib", "snappy", "zstd"):
        with suppress(HoodieError):
            decompress(data, codec, _MOST)
