r"""Reads and writes Java ``.properties`` files as ``java.util.Properties`` does.

The text is ISO-8859-1; lines end with LF, CR or CR LF; a line whose first visible character is ``#`` or ``!`` is a
comment; an odd number of backslashes at the end of a line continues it, and the continuation's leading blanks are
dropped. The key ends at the first unescaped ``=``, ``:`` or blank; ``\t \n \r \f \uXXXX`` are escapes and any other
escaped character stands for itself. The last line for a key counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hoodie_py.errors import CorruptFileError, InvalidTableError
from hoodie_py.formats.limits import get_limits, raise_limit_error

_BLANKS = " \t\f"
_CONTROL_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|u|.|$)", re.DOTALL)
_WRITTEN_ESCAPES = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"} | {char: f"\\{char}" for char in "=:#!\\"}
_SURROGATE = re.compile("[\ud800-\udfff]")
_KEY = re.compile(r"(?:[^=: \t\f\\]++|\\.?)*+", re.DOTALL)  # possessive: no backtracking, so linear time
_LINE_END = re.compile(r"(\r\n|\r|\n)")


def parse_properties(data: bytes) -> dict[str, str]:
    r"""Parse a Java properties file.

    Raises:
        InvalidTableError: a ``\uXXXX`` escape is malformed.
        CorruptFileError: the file is larger than the limit.
    """
    if len(data) > get_limits().properties_bytes:
        raise_limit_error(CorruptFileError, f"A properties file has {len(data)} bytes", "properties_bytes")
    properties: dict[str, str] = {}
    for _, line in _split_lines(data.decode("iso-8859-1")):
        if line is not None:
            key, value = _split_key(line)
            properties[_unescape(key)] = _unescape(value)
    return properties


def format_properties(properties: Mapping[str, str], comment: str | None = None) -> bytes:
    """Return a properties file that ``parse_properties`` and Java parse to the same mapping."""
    lines = [f"#{line}" for line in (comment or "").splitlines()]
    text = "".join(f"{line}\n" for line in lines) + "".join(
        _format_line(key, value) for key, value in properties.items()
    )
    return text.encode("iso-8859-1", errors="replace")


def update_properties(before: bytes, changes: Mapping[str, str | None]) -> bytes:
    """Change some properties of a file. Everything else stays: comments, order, escapes, line ends.

    None removes a key; a key that is not in the file is appended. Raises as ``parse_properties``.
    """
    changed = {**parse_properties(before), **changes}
    expected = {key: value for key, value in changed.items() if value is not None}
    pending = {key: value for key, value in changes.items() if value is not None}
    lines: list[str] = []
    for raw, logical in _split_lines(before.decode("iso-8859-1")):
        key = _unescape(_split_key(logical)[0]) if logical is not None else None
        if key is None or key not in changes:
            lines.append(raw)
        elif key in pending:  # the first of a key's lines gets the value, the others are removed
            lines.append(_format_line(key, pending.pop(key)))
    if lines and lines[-1] and not lines[-1].endswith(("\n", "\r")):
        lines.append("\n")
    lines += [_format_line(key, value) for key, value in pending.items()]
    after = "".join(lines).encode("iso-8859-1")
    if parse_properties(after) != expected:  # the file ends within a continued line
        after = format_properties(expected)
    return after


def _format_line(key: str, value: str) -> str:
    return f"{_escape(key, is_key=True)}={_escape(value, is_key=False)}\n"


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


def _split_lines(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield each logical line as raw text with all line ends, and as content, None for comments and blank lines."""
    parts = _LINE_END.split(text)  # line, end, line, end, ..., line
    raw: list[str] = []
    logical: list[str] = []
    for natural, end in zip(parts[::2], [*parts[1::2], ""], strict=True):
        raw.append(natural + end)
        line = natural.lstrip(_BLANKS)
        if not logical and (not line or line[0] in "#!"):
            yield "".join(raw), None
            raw = []
            continue
        continues = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        logical.append(line[:-1] if continues else line)
        if not continues:
            yield "".join(raw), "".join(logical) or None
            raw, logical = [], []
    if logical:
        yield "".join(raw), "".join(logical) or None


def _split_key(line: str) -> tuple[str, str]:
    match = _KEY.match(line)
    key = match[0] if match else ""
    rest = line[len(key) :].lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANKS)
    return key, rest


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(_decode_escape, text)
    if _SURROGATE.search(plain):
        # Two escapes may form one character beyond U+FFFF.
        return plain.encode("utf-16", errors="surrogatepass").decode("utf-16", errors="replace")
    return plain


def _decode_escape(match: re.Match[str]) -> str:
    code = match[1]
    if code == "u":
        raise InvalidTableError("A properties file has a malformed \\uXXXX escape.")
    if code.startswith("u"):
        return chr(int(code[1:], 16))
    return _CONTROL_ESCAPES.get(code, code)
