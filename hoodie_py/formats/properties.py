r"""Java ``.properties`` files, as ``java.util.Properties`` reads and writes them.

The text is ISO-8859-1; lines end with LF, CR or CR LF; a line whose first visible character is ``#`` or ``!`` is a
comment; an odd number of backslashes at the end of a line continues it, and the continuation's leading blanks are
dropped. The key ends at the first unescaped ``=``, ``:`` or blank; ``\t \n \r \f \uXXXX`` are escapes and any
other escaped character stands for itself. A later line for the same key wins.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from hoodie_py.errors import CorruptFileError, InvalidTableError

MAX_PROPERTIES_BYTES = 16 << 20

_BLANKS = " \t\f"
_CONTROL_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|u|.|$)", re.DOTALL)
_WRITTEN_ESCAPES = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"} | {char: f"\\{char}" for char in "=:#!\\"}
_SURROGATE = re.compile("[\ud800-\udfff]")
_LINE_END = re.compile(r"\r\n|\r|\n")


def parse_properties(data: bytes) -> dict[str, str]:
    r"""Read a Java properties file.

    Raises:
        InvalidTableError: a malformed ``\uXXXX`` escape.
        CorruptFileError: the file is unreasonably large.
    """
    if len(data) > MAX_PROPERTIES_BYTES:
        raise CorruptFileError(f"a properties file of {len(data)} bytes is not believable")
    properties: dict[str, str] = {}
    for line in _logical_lines(data.decode("iso-8859-1")):
        key, value = _split(line)
        properties[_unescape(key)] = _unescape(value)
    return properties


def format_properties(properties: Mapping[str, str], comment: str | None = None) -> bytes:
    """Write a properties file that ``parse_properties`` and Java read back to the same mapping."""
    lines = [f"#{line}" for line in (comment or "").splitlines()]
    lines += [f"{_escape(key, is_key=True)}={_escape(value, is_key=False)}" for key, value in properties.items()]
    return "".join(f"{line}\n" for line in lines).encode("iso-8859-1", errors="replace")


def _escape(text: str, *, is_key: bool) -> str:
    leading = len(text) if is_key else len(text) - len(text.lstrip(" "))
    out = []
    for index, char in enumerate(text):
        if char == " ":
            out.append("\\ " if index < leading else " ")
        elif char in _WRITTEN_ESCAPES:
            out.append(_WRITTEN_ESCAPES[char])
        elif " " < char <= "~":
            out.append(char)
        else:
            units = char.encode("utf-16-be", errors="surrogatepass")
            out += [f"\\u{units[at] << 8 | units[at + 1]:04X}" for at in range(0, len(units), 2)]
    return "".join(out)


def _logical_lines(text: str) -> list[str]:
    lines: list[str] = []
    pending: list[str] = []
    for natural in _LINE_END.split(text):
        line = natural.lstrip(_BLANKS)
        if not pending and (not line or line[0] in "#!"):
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            pending.append(line[:-1])
            continue
        lines.append("".join((*pending, line)))
        pending = []
    if pending:
        lines.append("".join(pending))
    return [line for line in lines if line]


def _split(line: str) -> tuple[str, str]:
    end = 0
    while end < len(line) and line[end] not in "=: \t\f":
        end += 2 if line[end] == "\\" else 1
    key = line[:end]
    rest = line[end:].lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANKS)
    return key, rest


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(_escaped, text)
    if _SURROGATE.search(plain):
        return plain.encode("utf-16", errors="surrogatepass").decode("utf-16", errors="replace")
    return plain


def _escaped(match: re.Match[str]) -> str:
    code = match[1]
    if code == "u":
        raise InvalidTableError("malformed \\uXXXX escape in a properties file")
    if code.startswith("u"):
        return chr(int(code[1:], 16))
    return _CONTROL_ESCAPES.get(code, code)
