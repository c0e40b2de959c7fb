"""The types of partition fields of a custom key generator: ``SIMPLE``, a value, or ``TIMESTAMP`` (Hudi
``CustomAvroKeyGenerator``).

Tables of version 8 and later store them with the fields in their properties, ``at:TIMESTAMP,lv:SIMPLE``. Up to version
6 the properties contain the fields alone, and every writer passes the types by an option, in Java, too.
"""

from __future__ import annotations

from collections.abc import Mapping

from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.options.source import PARTITION_PATH

_TYPES = ("SIMPLE", "TIMESTAMP")


def find_partition_types(config: TableConfig, options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the type of each partition field: as stored in the table, else as given by the options.

    Raises:
        InvalidQueryError: the option names other fields or an unknown type, or contradicts the table.
        UnsupportedFeatureError: neither the table nor the options give the types.
    """
    stored = tuple(type_ for type_ in config.partition_field_types if type_ in _TYPES)
    is_stored = len(stored) == len(config.partition_fields)
    given = parse_partition_types(config, options)
    if is_stored and given not in (None, stored):
        raise _make_disagreement(config, options, "the table has other types")
    if is_stored:
        return stored
    if given is None or any(config.partition_field_types):
        raise UnsupportedFeatureError(
            "Writing with a custom key generator whose table does not record the types of its partition fields.",
            hint=f"Give the option {PARTITION_PATH[0]}={','.join(f'{name}:TYPE' for name in config.partition_fields)} "
            f"as the table's other writers do, with TYPE {' or '.join(_TYPES)}. An upgrade with it stores the types.",
            table=config.name,
        )
    return given


def parse_partition_types(config: TableConfig, options: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the types that the options give for the table's partition fields; None if they give none.

    Raises:
        InvalidQueryError: the option names other fields, or unknown types.
    """
    text = options.get(PARTITION_PATH[0], "")
    pairs = [each.partition(":") for each in text.split(",") if each.strip()]
    if not any(colon for _, colon, _ in pairs):
        return None
    if tuple(name.strip() for name, _, _ in pairs) != config.partition_fields:
        raise _make_disagreement(config, options, f"the table's fields are {','.join(config.partition_fields)}")
    types = tuple(type_.strip().upper() for _, _, type_ in pairs)
    if not set(types) <= set(_TYPES):
        raise _make_disagreement(config, options, f"each field needs a type, {' or '.join(_TYPES)}")
    return types


def _make_disagreement(config: TableConfig, options: Mapping[str, str], why: str) -> InvalidQueryError:
    given = options[PARTITION_PATH[0]][:200]
    return InvalidQueryError(f"{PARTITION_PATH[0]}={given} does not fit the table: {why}.", table=config.name)
