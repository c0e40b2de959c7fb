"""Turn a user's words for an index into the name of its partition and its definition (Hudi ``HoodieIndexUtils``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hoodie_py.errors import InvalidQueryError
from hoodie_py.formats.metadata_table import index_definitions as names
from hoodie_py.formats.metadata_table.index_definitions import IndexDefinition
from hoodie_py.table.metadata_table.definitions import read_definitions
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.metadata_build.statistic_portions import choose_new_columns

_FIXED = (names.FILES, names.COLUMN_STATS, names.PARTITION_STATS, names.BLOOM_FILTERS, names.RECORD_INDEX)
_KINDS = (names.COLUMN_STATS, names.BLOOM_FILTERS)
_NOT_IN_NAMES = frozenset(",/\\. \t\r\n\0")


def define_index(
    snapshot: Snapshot,
    name: str,
    column: str | None = None,
    *,
    function: str | None = None,
    kind: str | None = None,
    partitioned: bool = False,
    arguments: Mapping[str, Any] | None = None,
    options: Mapping[str, str] | None = None,
) -> tuple[str, IndexDefinition | None]:
    """Return the partition and the definition of an index to build; arguments as for ``TableIndexes.build``.

    An index that has a definition already, as after a build that was killed, keeps it if the user names no column.

    Raises:
        InvalidQueryError: arguments that contradict each other, or a bad name.
    """
    named = {"column": column, "function": function, "kind": kind, "arguments": arguments}
    given = [key for key, value in named.items() if value]
    if partitioned and name != names.RECORD_INDEX:
        raise InvalidQueryError(f"Only {names.RECORD_INDEX} can be partitioned.")
    if name in _FIXED:
        if given:
            raise InvalidQueryError(f"The index {name!r} takes no {given[0]}.")
        return name, _define_fixed(snapshot, name, partitioned, options or {})
    return _define_named(snapshot, name, column, function, kind, arguments or {})


def _define_fixed(
    snapshot: Snapshot, name: str, partitioned: bool, options: Mapping[str, str]
) -> IndexDefinition | None:
    if name == names.COLUMN_STATS:
        indexed = choose_new_columns(snapshot, dict(options))
        return names.define_column_stats(indexed.names, snapshot.config.version)
    if name == names.RECORD_INDEX:
        if partitioned and not snapshot.config.has_logs_named_by_commit:
            raise InvalidQueryError(f"A table of version {snapshot.config.version} has no partitioned record index.")
        return names.define_record_index(partitioned=partitioned)
    return None


def _define_named(
    snapshot: Snapshot,
    name: str,
    column: str | None,
    function: str | None,
    kind: str | None,
    arguments: Mapping[str, Any],
) -> tuple[str, IndexDefinition]:
    is_expression = bool(function or kind or arguments) or name.startswith(names.EXPRESSION_PREFIX)
    prefix = names.EXPRESSION_PREFIX if is_expression else names.SECONDARY_PREFIX
    if is_expression and name.startswith(names.SECONDARY_PREFIX):
        raise InvalidQueryError("A secondary index has no function.", hint="Give the index another name.")
    full = name if name.startswith(prefix) else prefix + name
    if len(full) == len(prefix) or _NOT_IN_NAMES & set(full):
        raise InvalidQueryError(f"{name[:100]!r} cannot be the name of an index.", hint="Use letters, digits and '_'.")
    if column is None:
        known = read_definitions(snapshot.files, snapshot.config)
        found = known.get(full) or known.get(names.SECONDARY_PREFIX + name) or known.get(names.EXPRESSION_PREFIX + name)
        if found is None:
            hint = f"Give column=, or one of {', '.join(_FIXED)} as the name."
            raise InvalidQueryError(f"The index {name[:100]!r} needs a column.", hint=hint)
        return found.name, found
    version = snapshot.config.version
    if not is_expression:
        return full, names.define_secondary_index(full, column, version)
    if kind not in (None, *_KINDS):
        raise InvalidQueryError(f"{kind!r} is no kind of expression index.", hint=f"Give {' or '.join(_KINDS)}.")
    texts = {str(key): str(value) for key, value in arguments.items()}
    if function is not None:
        texts = {names.EXPRESSION: function.lower(), **texts}
    return full, names.define_expression_index(full, kind or names.COLUMN_STATS, column, texts, version)
