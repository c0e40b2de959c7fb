"""Which names columns and fields of structs may have, at every depth of a table's schema.

The rules are Java Hudi's:

* Avro's Schema.validateName: letters and digits of every script and underscores, no digit first. Java tests 16-bit
  characters, so characters beyond U+FFFF are not letters.
* No two fields of one struct have names that Spark considers equal (String.equalsIgnoreCase).
"""

from __future__ import annotations

from collections.abc import Iterable

from hoodie_py.errors import InvalidQueryError

_MOST_UNIT = 0xFFFF


def check_name(name: str) -> None:
    """Check one name. Raises InvalidQueryError if it is not allowed."""
    if not name or not _can_start_name(name[0]) or not all(map(_can_continue_name, name)):
        raise InvalidQueryError(
            f"{name[:100]!r} cannot be the name of a column.",
            hint="Names have letters, digits and underscores and do not begin with a digit.",
        )


def check_siblings(names: Iterable[str]) -> None:
    """Check the names of one struct's fields. Raises InvalidQueryError if two are equal or differ only in case."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.get(fold_case(name))
        if other == name:
            raise InvalidQueryError(f"The schema has the column {name!r} more than once.", column=name)
        if other is not None:
            raise InvalidQueryError(
                f"The schema has the columns {other!r} and {name!r}.",
                hint="Spark cannot tell them apart; rename one of them.",
                column=name,
            )
        seen[fold_case(name)] = name


def fold_case(name: str) -> str:
    """Return the same text for names that are equal for Java's equalsIgnoreCase."""
    return "".join(map(_fold_character, name))


def _fold_character(character: str) -> str:
    upper = character.upper()
    return (upper if len(upper) == 1 else character).lower()[:1]


def _can_start_name(character: str) -> bool:
    return character == "_" or (ord(character) <= _MOST_UNIT and character.isalpha())


def _can_continue_name(character: str) -> bool:
    return _can_start_name(character) or (ord(character) <= _MOST_UNIT and character.isdecimal())
