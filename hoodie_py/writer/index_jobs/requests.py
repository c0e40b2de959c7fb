"""Requests to build or drop an index: the definition of the index, and the reasons to refuse (Hudi
``HoodieIndexUtils``).

An index is refused if it would leave the table, or another writer, wrong. A Java writer in flight knows only the
partitions that existed when it began: it fails, or leaves a hole in a new one. Up to table version 6 Java builds
nothing beside any pending instant, and skips its own update of the metadata table while a partition is missing (Hudi
``HoodieBackedTableMetadataWriterTableVersionSix``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from hoodie_py.errors import ConflictError, InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.indexes import definitions as names
from hoodie_py.formats.indexes.definitions import IndexDefinition
from hoodie_py.formats.indexes.expressions import check_function, find_computation
from hoodie_py.formats.timeline.instants import INDEXING, INFLIGHT
from hoodie_py.table.indexes.view import read_definitions
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.indexes.column_ranges import choose_new_columns
from hoodie_py.writer.indexes.expression_values import find_kind, make_texts
from hoodie_py.writer.indexes.registry import FIXED
from hoodie_py.writer.output_schema import load_output_schema
from hoodie_py.writer.transaction.pending import list_pending_writes
from hoodie_py.writer.transaction.same_properties import check_same_properties

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

    An index that already has a definition, for example after a killed build, keeps it if the caller names no column.

    Raises:
        InvalidQueryError: arguments contradict each other, or the name is bad.
    """
    named = {"column": column, "function": function, "kind": kind, "arguments": arguments}
    given = [key for key, value in named.items() if value]
    if partitioned and name != names.RECORD_INDEX:
        raise InvalidQueryError(f"Only {names.RECORD_INDEX} can be partitioned.")
    if name in FIXED:
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
            hint = f"Give column=, or one of {', '.join(FIXED)} as the name."
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


_OF_NEW_TABLES = (names.PARTITION_STATS, names.SECONDARY_PREFIX, names.EXPRESSION_PREFIX)


def check_nothing_pending(snapshot: Snapshot, *, indexing_too: bool = True) -> None:
    """Refuse to change the partitions of the metadata table beside other work on the table.

    Raises:
        ConflictError: names the instant.
    """
    pending = snapshot.timeline.select_pending()
    building = pending.select_actions(INDEXING)
    if indexing_too and len(building):
        raise ConflictError(
            "Java Hudi is building an index, or was killed while it did.",
            hint="Let it finish, or drop that index, which removes its plan: `hoodie index TABLE` shows which it is.",
            instant=building.instants[0].request_time,
        )
    others = [each for each in pending if each.action != INDEXING]
    if snapshot.config.has_logs_named_by_commit:
        writes = list_pending_writes(snapshot)
        others = [each for each in others if each.state == INFLIGHT or each in writes]
    if others:
        raise ConflictError(
            "The indexes of a table cannot change while an instant is pending.",
            hint="Let its writer finish; run a pending compaction; roll back what was given up.",
            action=others[0].action,
            instant=others[0].request_time,
        )


def check_same_table(look: Snapshot, now: Snapshot) -> None:
    """Check that the table still has the properties and the columns by which an index was defined.

    Raises:
        ConflictError: properties or columns changed.
    """
    check_same_properties(look.config, now.config)
    if look.timeline.list_completed_writes() and look.schema.text != now.schema.text:
        raise ConflictError(
            "The table's columns were altered since the index was defined.", hint="Run it again.", table=now.config.name
        )


def check_possible(snapshot: Snapshot, partition: str, definition: IndexDefinition | None) -> None:
    """Refuse an index that is not possible on the table.

    Raises:
        InvalidQueryError: it exists already, or lacks what it needs: a partitioned table, another index, a column.
        UnsupportedFeatureError: the table version has no such index.
    """
    config = snapshot.config
    if partition in config.metadata_partitions:
        raise InvalidQueryError(f"The table has the index {partition!r} already.", hint="Drop it to build it anew.")
    if not config.has_logs_named_by_commit and partition.startswith(_OF_NEW_TABLES):
        raise UnsupportedFeatureError(
            f"Indexes like {partition!r} on tables of version {config.version}.", hint="Upgrade the table to version 8."
        )
    if partition == names.PARTITION_STATS:
        if not config.is_partitioned:
            raise InvalidQueryError("A table without partitions has no statistics of partitions.")
        _check_there(snapshot, names.COLUMN_STATS, partition)
    if partition.startswith(names.SECONDARY_PREFIX):
        _check_there(snapshot, names.RECORD_INDEX, partition)
    known = snapshot.schema.arrow.names
    for column in () if definition is None else definition.columns:
        if column.partition(".")[0] not in known:
            raise InvalidQueryError(f"The table has no column {column[:100]!r}.", hint=f"It has {', '.join(known)}.")
    if definition is not None and definition.is_expression:
        _check_expression(snapshot, definition)


def _check_expression(snapshot: Snapshot, definition: IndexDefinition) -> None:
    """Refuse an index whose values cannot be computed here, or that keeps Java from writing."""
    arguments = {key: text for key, text in definition.options.items() if key != names.EXPRESSION}
    check_function(definition.function, arguments)
    [column] = definition.columns
    schema = snapshot.schema.arrow
    type_ = schema.field(column).type if column in schema.names else None
    if type_ is None:
        raise UnsupportedFeatureError(f"Expression indexes over {column[:100]!r}, a field of a struct.")
    compute = find_computation(definition, type_)
    results = None if compute is None else compute(pa.array([], type_))
    if results is None:
        raise UnsupportedFeatureError(
            f"Building an index over {definition.function!r} of a column of type {type_}: the results depend on Spark.",
            hint="Let Java Hudi build it (CREATE INDEX in Spark SQL); writes here keep it.",
        )
    if definition.kind == names.BLOOM_FILTERS:
        if snapshot.config.is_merge_on_read:
            raise UnsupportedFeatureError(
                "Expression indexes of bloom filters on merge-on-read tables: Java Hudi can write no log files then.",
                hint=f"Give the kind {names.COLUMN_STATS!r}.",
            )
        if make_texts(results) is None:
            raise UnsupportedFeatureError(f"Expression indexes of bloom filters of {definition.function!r} of {type_}.")
    elif find_kind(definition, load_output_schema(snapshot).avro) is None:
        raise UnsupportedFeatureError(f"Expression indexes of the order of {definition.function!r} of {type_}.")


def _check_there(snapshot: Snapshot, needed: str, partition: str) -> None:
    if needed not in snapshot.config.metadata_partitions:
        raise InvalidQueryError(f"The index {partition!r} needs {needed!r}.", hint=f"Build {needed} first.")
