"""What a write learns from its first look at the table, and what follows if another process changes it afterwards.

A write looks at the table once, takes its rows, which may last for hours, and only then begins its instant. The instant
keeps other writers out of much, but not out of everything. So what the write knows is checked again under the lock,
right before it begins and right before it commits. What can be taken over from the later look is taken over. If rows
were prepared by facts that are outdated, the write ends in a ``ConflictError`` that says to run it again.

* Commits, plans, clusterings, restores that completed: a conflict if they are about the same file groups or new keys
  (``conflicts``). That holds for hash ranges, too: a clustering changes only the ranges of the file groups that it
  replaces (``clustering.resize``).
* A restore or a bootstrap that is pending, a feature that cannot be written: refused (``refusals``).
* Columns, changed by ALTER (this package's or Java's) or by writes that add some: a conflict
  (``timeline.schema_commits.check_same_columns``).
* Properties of the table: version (upgrade, downgrade), merge mode, ordering fields, change capture, key generator,
  partition style, meta fields and all others: a conflict (``transaction.same_properties``).
* The partitions of the metadata table (complete, or being built by an indexer), the metadata table itself (created,
  removed or built anew), and the definitions of indexes: taken over. The tasks measure the columns of the table as it
  is when the write begins, and the commit's records are made for what is there at the commit
  (``indexes.kept_indexes``). Builds of this package refuse to start beside a begun instant. Java's indexer does not,
  and relies on the commits beside it to write their records of the part that it builds.
* Whether the metadata table can be kept right, and whether writers may be non-blocking beside its indexes: refused
  if not (``MetadataTable.check``, ``check_non_blocking``).
* The index of the table, that is its kind, if the table had no file groups at the first look, and its numbers of
  buckets: a conflict (``index.table_index``). A record index that is dropped or built anew changes nothing: its answers
  were right.
* The reasons to refuse an alteration, such as indexes of a column: checked again (``Intent.check``).
* Savepoints: no write rests on them. Cleans check theirs when they begin (``services.clean_plan.check_plan``).

Compactions, log compactions, clusterings, cleans, restores and rollbacks take their look under the lock in which they
begin, so only the time from there to the commit counts: ``commit_protocol`` checks the properties and takes the indexes
over for all operations, and each checks its own plan.

A non-blocking write adds log files to buckets (Hudi ``WriteConcurrencyMode``). The key's hash chooses the bucket, and
the bucket's number the file id, so several writers may do so at once, even for the same keys: readers and compactions
merge the log files by the table's merge mode.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hoodie_py.errors import ConflictError, InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.indexes.definitions import RECORD_INDEX, SECONDARY_PREFIX
from hoodie_py.formats.timeline.commit_metadata import WriteStat
from hoodie_py.formats.timeline.instants import COMMIT, DELTA_COMMIT, REPLACE_COMMIT, Instant
from hoodie_py.options.write import CONCURRENCY_MODE, NON_BLOCKING
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.commit.conflicts import Claims, check_conflicts
from hoodie_py.writer.index.table_index import has_same_bucket_rules, resolve_table_index
from hoodie_py.writer.indexes.kept_indexes import list_kept_partitions
from hoodie_py.writer.indexes.metadata_table import MetadataTable
from hoodie_py.writer.output_schema import OutputSchema
from hoodie_py.writer.records import WriteOperation
from hoodie_py.writer.refusals import check_writable
from hoodie_py.writer.rollback.recovery import list_rollbacks_to_finish
from hoodie_py.writer.settings import WriteSettings
from hoodie_py.writer.timeline.schema_commits import check_same_columns
from hoodie_py.writer.timeline.session import WriteSession
from hoodie_py.writer.transaction.pending import list_pending_writes
from hoodie_py.writer.transaction.same_properties import check_same_properties


def check_non_blocking(snapshot: Snapshot, settings: WriteSettings) -> None:
    """Refuse non-blocking writes where Java does, and on tables whose metadata table indexes keys.

    Raises:
        InvalidQueryError: the table is not merge-on-read, or its index is no simple bucket index.
        UnsupportedFeatureError: the table is older than version 8, or has a record index or a secondary index.
    """
    if not settings.non_blocking:
        return
    config, index = snapshot.config, settings.index
    if not config.is_merge_on_read or not index.is_bucket or index.consistent:
        raise InvalidQueryError(
            f"{CONCURRENCY_MODE}={NON_BLOCKING} needs a merge-on-read table with a simple bucket index.",
            hint="Set hoodie.index.type=BUCKET and hoodie.bucket.index.num.buckets, or use "
            "OPTIMISTIC_CONCURRENCY_CONTROL.",
        )
    if not config.has_logs_named_by_commit:
        raise UnsupportedFeatureError(
            "Non-blocking writers of a table below version 8: its log files belong to the slice that the writer saw.",
            hint="Upgrade the table, or use OPTIMISTIC_CONCURRENCY_CONTROL.",
        )
    keyed = [each for each in list_kept_partitions(snapshot) if each.startswith((RECORD_INDEX, SECONDARY_PREFIX))]
    if keyed:
        raise UnsupportedFeatureError(
            f"Non-blocking writers of a table whose metadata table has {keyed[0]}: writers of one key would not know "
            "of each other.",
            hint="Drop the index, or use OPTIMISTIC_CONCURRENCY_CONTROL.",
        )


def _accept(_now: Snapshot) -> None:
    """Check nothing."""


@dataclass(frozen=True, slots=True)
class Intent:
    """A write before it has an instant.

    Attributes:
        operation: the operation.
        snapshot: the table at the first look.
        schema: the schema of the new files.
        claims: what the write changes.
        workload: for the inflight file: one stat for each file group, without path, by partition.
        extra_metadata: the caller's entries in the commit's metadata.
        merger: the table's own, if the caller gave it.
        check: raises a HoodieError if the operation itself is not possible on the table any more.
    """

    operation: WriteOperation
    snapshot: Snapshot
    schema: OutputSchema
    claims: Claims
    workload: Mapping[str, tuple[WriteStat, ...]] = field(default_factory=dict)
    extra_metadata: Mapping[str, str] = field(default_factory=dict)
    merger: Merger | None = None
    check: Callable[[Snapshot], None] = _accept

    @property
    def replaces(self) -> bool:
        """Whether it replaces file groups."""
        return self.claims.replaced is not None

    @property
    def writes_base_files(self) -> bool:
        """Whether it may write base files, not only log files."""
        stats = [each for some in self.workload.values() for each in some]
        return not self.snapshot.config.is_merge_on_read or not stats or any(each.num_inserts for each in stats)

    @property
    def action(self) -> str:
        """The action on the timeline."""
        if self.replaces:
            return REPLACE_COMMIT
        return DELTA_COMMIT if self.snapshot.config.is_merge_on_read else COMMIT


def check_before_begin(session: WriteSession, intent: Intent, now: Snapshot) -> None:
    """Check that a write may begin. The caller holds the lock, and looked at the table under it.

    Raises:
        ConflictError: another process changed what the write rests on, or is at work.
        UnsupportedFeatureError: the table has a feature that is not handled.
        HoodieError: as ``Intent.check``.
    """
    before = intent.snapshot
    check_same_properties(before.config, now.config)
    check_writable(now)
    MetadataTable.check(now, session.settings.metadata_mode)
    _check_nothing_under_way(session, now)
    check_same_columns(before, now, intent.schema)
    check_conflicts(intent.claims, before, now, beginning=True)
    intent.check(now)
    if intent.claims.non_blocking:
        check_non_blocking(now, session.settings)
    _check_same_index(session, intent, now)


def check_before_commit(session: WriteSession, intent: Intent, now: Snapshot, instant: str) -> None:
    """Check that a write that has begun may commit. The caller holds the lock; errors as for ``check_before_begin``.

    ``complete_instant`` checks the properties itself.
    """
    check_writable(now)
    check_same_columns(intent.snapshot, now, intent.schema, instant)
    check_conflicts(intent.claims, intent.snapshot, now)
    if intent.claims.non_blocking:
        check_non_blocking(now, session.settings)
    _check_bucket_rules(session, now)


def _check_nothing_under_way(session: WriteSession, now: Snapshot) -> None:
    pending: list[Instant] = []
    if not session.multi_writer:
        pending = list_pending_writes(now) or [each.instant for each in list_rollbacks_to_finish(now)]
    if pending:
        raise ConflictError(
            f"Another {pending[0].action} is under way.",
            hint="Let it finish. If several writers work at the same time, declare that and a lock provider.",
            instant=pending[0].request_time,
        )


def _check_same_index(session: WriteSession, intent: Intent, now: Snapshot) -> None:
    """Check that file groups added to an empty table have the write's index, and that bucket rules are the same."""
    chosen = session.settings.table_index
    if chosen is None:
        return
    if not intent.snapshot.timeline.list_completed_writes() and now.timeline.list_completed_writes():
        found = resolve_table_index(session, now, intent.operation, intent.merger).settings.index
        if found.is_bucket != chosen.is_bucket or (found.is_bucket and found != chosen):
            raise _make_index_conflict(now)
    _check_bucket_rules(session, now)


def _check_bucket_rules(session: WriteSession, now: Snapshot) -> None:
    chosen = session.settings.table_index
    if chosen is not None and chosen.is_bucket and not has_same_bucket_rules(now, chosen):
        raise _make_index_conflict(now)


def _make_index_conflict(now: Snapshot) -> ConflictError:
    return ConflictError(
        "Another process chose the index of the table, or its numbers of buckets, since this write looked at it.",
        hint="Run it again.",
        table=now.config.name,
    )
