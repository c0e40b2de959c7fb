from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.formats.log.framing import BlockType, HeaderKey, LogBlock, encode_block, iterate_blocks
from tests.corpus import corpus_names
from tests.formats.log_writer import block
from tests.formats.real_logs import real_logs

kinds = st.sampled_from([kind for kind in BlockType if kind is not BlockType.CORRUPT])
headers = st.dictionaries(st.sampled_from(HeaderKey), st.text(max_size=20), max_size=5)


@given(st.lists(st.tuples(kinds, headers, st.binary(max_size=50)), max_size=4))
def test_blocks_read_back(blocks: list[tuple[BlockType, dict[HeaderKey, str], bytes]]) -> None:
    data = b"".join(encode_block(*one) for one in blocks)
    found = [one for one in iterate_blocks(data) if isinstance(one, LogBlock)]
    assert [(one.type, dict(one.headers), bytes(one.content)) for one in found] == blocks
    assert data == b"".join(block(*one) for one in blocks)


def test_blocks_of_java_come_out_byte_for_byte() -> None:
    checked = 0
    for name in corpus_names():
        for data in real_logs(name).values():
            for one in iterate_blocks(data):
                if isinstance(one, LogBlock):
                    again = encode_block(one.type, one.headers, bytes(one.content))
                    assert again == data[one.offset : one.offset + one.size]
                    checked += 1
    assert checked > 50
