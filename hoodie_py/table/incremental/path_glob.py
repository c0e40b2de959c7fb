"""Matches the paths of file slices with a Hadoop glob (``org.apache.hadoop.fs.GlobPattern``).

``*`` matches any text, slashes included, ``?`` one character, ``[a-c]`` and ``[^a]`` one of a set, ``{x,y}`` one of
several texts. A backslash makes the next character literal.
"""

from __future__ import annotations

import re

from hoodie_py.errors import InvalidQueryError
from hoodie_py.options.read import RANGE_PATH_GLOB

_LONGEST = 4096


def compile_glob(glob: str) -> re.Pattern[str]:
    """Return the regular expression that matches a whole path.

    Raises:
        InvalidQueryError: a bracket or brace is not closed, or the glob is too long.
    """
    parts: list[str] = []
    depth, at = 0, 0
    while at < len(glob):
        char = glob[at]
        if char == "\\" and at + 1 < len(glob):
            at += 1
            parts.append(re.escape(glob[at]))
        elif char == "*":
            # Runs of stars mean the same as one, and would make the match slow.
            if not parts or parts[-1] != ".*":
                parts.append(".*")
        elif char == "?":
            parts.append(".")
        elif char == "[":
            stop = glob.find("]", at + 2)
            if stop < 0:
                raise _make_error(glob)
            inside = glob[at + 1 : stop].replace("\\", "\\\\").replace("[", "\\[")
            parts.append("[" + ("^" + inside[1:] if inside[:1] in "!^" else inside) + "]")
            at = stop
        elif char == "{":
            depth += 1
            parts.append("(?:")
        elif char == "}" and depth:
            depth -= 1
            parts.append(")")
        elif char == "," and depth:
            parts.append("|")
        else:
            parts.append(re.escape(char))
        at += 1
    if depth or len(glob) > _LONGEST:
        raise _make_error(glob)
    try:
        return re.compile("".join(parts), re.DOTALL)
    except re.error as error:
        raise _make_error(glob) from error


def _make_error(glob: str) -> InvalidQueryError:
    return InvalidQueryError(f"{RANGE_PATH_GLOB} is no glob: {glob[:100]!r}.", hint="Close every [ and {.")
