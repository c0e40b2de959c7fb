"""The part of ``HoodieTable`` that alters a table's columns (Hudi ``AlterTableCommand``).

Modules of the writer are imported inside the methods, so that a program that only reads does not load them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hoodie_py.writer.table_writes import TableWrites

if TYPE_CHECKING:
    import pyarrow as pa

    from hoodie_py.writer.alter.alter import AlterResult
    from hoodie_py.writer.lock.lock import Lock


class TableAlterations(TableWrites):
    """Alters the columns of a table. After that this object shows the new columns."""

    def alter(
        self,
        add: Mapping[str, pa.DataType | str] | Iterable[pa.Field] | None = None,
        rename: Mapping[str, str] | None = None,
        drop: str | Sequence[str] = (),
        cast: Mapping[str, pa.DataType | str] | None = None,
        reorder: Mapping[str, str] | None = None,
        nullable: str | Sequence[str] = (),
        comment: Mapping[str, str | None] | None = None,
        *,
        allow_loss: bool = False,
        dry_run: bool = False,
        options: Mapping[str, Any] | None = None,
        lock: Lock | None = None,
    ) -> AlterResult:
        """Add, rename, drop, retype or move columns, and rewrite no file, by Hudi's schema-on-read.

        All changes are one commit. Names lead into structs by dots, into lists by ``element`` and into maps by
        ``value``, as in ``st.a`` and ``tags.element.name``. Java Hudi reads and writes such a table with
        ``hoodie.schema.on.read.enable=true``.

        Args:
            add: new columns, all nullable: types by name, or Arrow fields. A text is a type of Spark SQL.
            rename: new names by old ones.
            drop: columns to drop. Files keep their values, for queries of the past.
            cast: new types by name. Old values are converted when they are read.
            reorder: places by name: ``first``, ``after NAME`` or ``before NAME``.
            nullable: required columns that may be null from now on.
            comment: comments by name; None takes one away.
            allow_loss: allow casts in which values may lose digits, become text, or have no value in the new type.
            dry_run: change nothing, and say what would change.
            options: Hudi's writer options: lock provider, ...
            lock: the lock of the table's other writers, if it is not a lock provider that is handled here.

        Raises:
            InvalidQueryError: there is no such column, or a change is not allowed: keys, partition paths and the order
                of versions are made of the column, an index is of it, or its values cannot be read in the new type.
            UnsupportedFeatureError: the table has a feature or a type that is not handled.
            ConflictError: another writer changed the table, or is at work.
            CommitStateUnknownError: the store did not say whether the commit landed; nothing was taken back.
            StorageError: the store refused; the table is unchanged.

        Examples:
            >>> result = trips.alter(add={"tip": pa.float64()}, rename={"price": "fare"})
            >>> trips.schema.names[-4:]
            ['city', 'fare', 'ts', 'tip']
            >>> trips.scan(["id", "fare", "tip"], filter="id = 'a'").to_arrow().to_pylist()
            [{'id': 'a', 'fare': 12.0, 'tip': None}]
        """
        from hoodie_py.writer.alter import alter
        from hoodie_py.writer.alter.changes import Changes
        from hoodie_py.writer.alter.type_text import make_fields, make_type

        changes = Changes(
            add=make_fields(add),
            rename=dict(rename or {}),
            drop=(drop,) if isinstance(drop, str) else tuple(drop),
            cast={name: make_type(each) for name, each in (cast or {}).items()},
            reorder=dict(reorder or {}),
            nullable=(nullable,) if isinstance(nullable, str) else tuple(nullable),
            comment=dict(comment or {}),
            allow_loss=allow_loss,
        )
        result = alter.alter(self._open_session(options, lock), changes, dry_run=dry_run)
        return self._refresh(result, changed=result.instant is not None)
