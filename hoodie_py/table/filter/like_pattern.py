"""Match text against a LIKE pattern: ``%`` is any run of characters, ``_`` is one, and an escape makes either literal.

The match is case-sensitive and covers the whole text, and ``%`` crosses line ends (Spark's
``StringUtils.escapeLikeRegex``). Simple patterns use Arrow's faster kernels, all others a regular expression.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.errors import InvalidQueryError

ANY_RUN, ANY_ONE = "%", "_"


def _split_pattern(pattern: str, escape: str) -> Iterator[tuple[str, bool]]:
    """Yield each character of a valid pattern, and whether it is a wildcard."""
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            yield next(characters), False
        else:
            yield character, character in (ANY_RUN, ANY_ONE)


def find_literal_prefix(pattern: str, escape: str) -> str:
    """Return the text before the first wildcard."""
    return "".join(character for character, _ in takewhile(lambda part: not part[1], _split_pattern(pattern, escape)))


def match_pattern(values: pa.Array, pattern: str, escape: str) -> pa.BooleanArray:
    """Return for each text whether it matches; null stays null."""
    parts = list(_split_pattern(pattern, escape))
    text = "".join(character for character, wild in parts if not wild)
    wilds = [character for character, wild in parts if wild]
    if not wilds:
        return pc.equal(values, text)
    if wilds == [ANY_RUN] and parts[-1] == (ANY_RUN, True):
        return pc.starts_with(values, text)
    if wilds == [ANY_RUN] and parts[0] == (ANY_RUN, True):
        return pc.ends_with(values, text)
    if wilds == [ANY_RUN, ANY_RUN] and parts[0] == parts[-1] == (ANY_RUN, True):
        return pc.match_substring(values, text)
    try:
        return pc.match_substring_regex(values, _make_regex(parts))
    except pa.ArrowInvalid as error:
        raise InvalidQueryError(f"The LIKE pattern {pattern[:60]!r} is too complex.") from error


def _make_regex(parts: list[tuple[str, bool]]) -> str:
    """Write literal characters as hexadecimal codes, so that none has a special meaning in a regular expression."""
    written = [{ANY_RUN: ".*", ANY_ONE: "."}[text] if wild else f"\\x{{{ord(text):x}}}" for text, wild in parts]
    return "(?s)\\A" + "".join(written) + "\\z"
