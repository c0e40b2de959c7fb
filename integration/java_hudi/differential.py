"""A random history of a random table, which Java Hudi and this package make together; both answer the same queries.

A seed says everything: the kind of table (``recipes``), who makes it, which operations follow and whose they are, and
what is asked. A model in plain Python says what a snapshot must have, so that both cannot be wrong in the same way.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from hoodie_py import HoodieTable
from integration.corpus_compare import differences
from integration.java_hudi.random_filters import make_filter
from integration.java_hudi.recipes import ORDERING, Recipe, Row
from integration.java_hudi.session import JavaHudiError, JavaSession
from integration.java_hudi.tables import is_metadata_compaction_near

RETAINED = 3  # commits that cleans keep; queries over time go no further back once there was one
_QUERY = "hoodie.datasource.query"
_READ = "hoodie.datasource.read"
_NEW_TIMES = 8  # table version from which ranges are of completion times, and Java's procedures know the timeline

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a record: the number of the record, its time, and the row."""

    number: int
    time: int
    row: Row


@dataclass(frozen=True, slots=True)
class Question:
    """A query: a name, Java's condition and options for it, and how this package answers it."""

    name: str
    where: str | None
    options: dict[str, str]
    answer: Callable[[HoodieTable], pa.Table]


@dataclass(frozen=True, slots=True)
class State:
    """A table that was: its kind with the columns of then, its rows, and the instant of its last write."""

    recipe: Recipe
    rows: dict[Key, Version]
    instant: str


@dataclass(slots=True)
class History:
    """A table under way.

    Args:
        java: the session.
        path: base path.
        recipe: the kind of table.
        lot: decides everything that follows.
        rows: what a snapshot has.
        time: of the newest versions.
        numbers: how many records there were.
        cleaned: whether files were removed.
        saved: the last savepoint.
        before: what was before the last step, if that was a write.
        replaced: whether that write replaced file groups.
        compared: how many answers were alike.
        done: what was done and asked, for the message of a failure.
    """

    java: JavaSession
    path: Path
    recipe: Recipe
    lot: random.Random
    rows: dict[Key, Version] = field(default_factory=dict)
    time: int = 10
    numbers: int = 0
    cleaned: bool = False
    saved: State | None = None
    before: State | None = None
    replaced: bool = False
    compared: int = 0
    done: list[str] = field(default_factory=list)

    def begin(self) -> None:
        """Make the table, by either engine."""
        ours = self.lot.random() < 0.5
        recipe = self.recipe
        if ours:
            HoodieTable.create(
                self.path,
                recipe.schema,
                record_key=recipe.keys,
                ordering=ORDERING if recipe.merge_by_time else None,
                partition_by=list(recipe.partitions),
                table_type=recipe.table_type,
                table_version=recipe.version,
                name="random",
                properties=recipe.properties,
            )
        self.write(self.make_new(self.lot.randrange(5, 30)), "insert", ours=ours)
        self.before = None  # something stays

    def act(self) -> None:
        """Do one thing, by either engine."""
        acts: list[Callable[[bool], None]] = [self.upsert] * 4 + [self.insert, self.delete, self.overwrite, self.clean]
        acts += [self.grow, self.roll_back, self.save, self.restore]
        acts += [self.compact] * 2 if self.recipe.merge_on_read else []
        acts += [] if self.recipe.has_buckets else [self.cluster]
        acts += [self.delete_partition] if self.recipe.partitions else []
        chosen = self.lot.choice(acts)
        known = len(self.done)
        chosen(self.lot.random() < 0.5)
        if len(self.done) > known and chosen in (self.compact, self.cluster, self.clean, self.save, self.restore):
            self.before = None

    def upsert(self, ours: bool) -> None:
        """Write new records, newer versions and late ones."""
        self.time += 10
        versions = self.make_new(self.lot.randrange(4))
        known = sorted(self.rows)
        for key in self.lot.sample(known, min(len(known), self.lot.randrange(1, 12))):
            last = self.rows[key]
            time = max(last.time - 1, 1) if self.lot.random() < 0.2 else self.time
            versions.append(self.make_version(last.number, time))
        self.write(versions, "upsert", ours=ours)

    def insert(self, ours: bool) -> None:
        """Write records that are new. A bulk insert of Java into buckets makes second file groups of a bucket."""
        operations = ("insert",) if self.recipe.has_buckets and not ours else ("insert", "bulk_insert")
        self.write(self.make_new(self.lot.randrange(1, 9)), self.lot.choice(operations), ours=ours)

    def delete(self, ours: bool) -> None:
        """Delete records by key."""
        self.time += 10
        known = sorted(self.rows)
        doomed = self.lot.sample(known, min(len(known) - 1, self.lot.randrange(1, 5)))
        if doomed:
            self.write([self.make_version(self.rows[key].number, self.time) for key in doomed], "delete", ours=ours)

    def overwrite(self, ours: bool) -> None:
        """Replace the partitions of some new records."""
        before = self._remember()
        versions = self.make_new(self.lot.randrange(1, 4))
        parts = {self._find_partition(each) for each in versions}
        self.rows = {key: each for key, each in self.rows.items() if self._find_partition(each) not in parts}
        self.write(versions, "insert_overwrite", ours=ours)
        self.before, self.replaced = before, True

    def delete_partition(self, ours: bool) -> None:
        """Delete the rows of a partition."""
        paths = sorted(set(self.open().scan(columns=["_hoodie_partition_path"]).to_arrow().column(0).to_pylist()))
        if len(paths) < 2:
            return
        path = self.lot.choice(paths)
        found = self.open().scan(columns=self.recipe.keys, filter=f"_hoodie_partition_path = '{path}'").to_arrow()
        before = self._remember()
        if ours:
            self._note("ours", "delete_partition", self.open().delete_partition(path, options=self.recipe.our_options))
        else:
            data = pa.Table.from_pylist([next(iter(self.rows.values())).row], self.recipe.schema)
            options = {**self.recipe.java_options, "hoodie.datasource.write.partitions.to.delete": path}
            self.java.write(self.path, data, options, operation="delete_partition")
            self._note("java", "delete_partition", path)
        for row in found.to_pylist():
            del self.rows[self.recipe.identify(row)]
        self.before, self.replaced = before, True

    def grow(self, ours: bool) -> None:
        """Write rows with one column more."""
        before = self._remember()
        self.recipe = self.recipe.grow(self.lot)
        self.upsert(ours)
        self.before = before

    def roll_back(self, ours: bool) -> None:
        """Have Java take the last write back, as its procedure does on newer tables; this package only restores."""
        if ours or self.before is None or self.recipe.version < _NEW_TIMES:
            return
        if is_metadata_compaction_near(self.path):
            return
        if self.recipe.metadata and self.replaced:  # Java does not give partitions their statistics back
            return
        last = self._find_last_write()
        with self.java.configured(self.recipe.service_options):
            self._note("java", "rollback", self.java.call(self.path, "rollback_to_instant", instant_time=last))
        self._go_back(self.before)

    def save(self, ours: bool) -> None:
        """Make a savepoint of the last write."""
        if self.saved is not None:
            return
        self.saved = replace(self._remember(), instant=self._find_last_write())
        if ours:
            self._note("ours", "savepoint", self.open().savepoint(options=self.recipe.our_options))
        else:
            with self.java.configured(self.recipe.service_options):
                saved = self.java.call(self.path, "create_savepoint", commit_time=self.saved.instant)
            self._note("java", "savepoint", saved)

    def restore(self, ours: bool) -> None:
        """Go back to the savepoint; with a metadata table this package does, as Java leaves entries of what is gone."""
        if self.saved is None:
            return
        if ours or self.recipe.metadata:
            self._note("ours", "restore", self.open().restore(self.saved.instant, options=self.recipe.our_options))
        else:
            with self.java.configured(self.recipe.service_options):
                done = self.java.call(self.path, "rollback_to_savepoint", instant_time=self.saved.instant)
            self._note("java", "restore", done)
        self._go_back(self.saved)

    def compact(self, ours: bool) -> None:
        """Merge log files into base files."""
        if ours:
            self._note("ours", "compact", self.open().compact(options=self.recipe.our_options))
        else:
            self._note("java", "compact", self.java.run_compaction(self.path, self.recipe.service_options))

    def cluster(self, ours: bool) -> None:
        """Write small files anew."""
        if ours:
            self._note("ours", "cluster", self.open().cluster(options=self.recipe.our_options))
        else:
            self._note("java", "cluster", self.java.clustering(self.path, self.recipe.service_options))

    def clean(self, ours: bool) -> None:
        """Remove files that newer ones replaced."""
        self.cleaned = True
        if ours:
            self._note("ours", "clean", self.open().clean(retain_commits=RETAINED, options=self.recipe.our_options))
        else:
            with self.java.configured(self.recipe.service_options):
                self._note("java", "clean", self.java.clean(self.path, self.recipe.service_options, RETAINED))

    def write(self, versions: Sequence[Version], operation: str, *, ours: bool) -> None:
        """Write rows and note what that must do."""
        before = self._remember()
        data = pa.Table.from_pylist([each.row for each in versions], self.recipe.schema)
        if ours:
            self._note("ours", operation, getattr(self.open(), operation)(data, options=self.recipe.our_options))
        else:
            mode = "append" if self.path.exists() else "overwrite"
            self.java.write(self.path, data, self.recipe.java_options, operation=operation, mode=mode)
            self._note("java", operation, f"{len(versions)} rows")
        for each in versions:
            key = self.recipe.identify(each.row)
            known = self.rows.get(key)
            if operation == "delete":
                del self.rows[key]
            elif known is None or not self.recipe.merge_by_time or known.time <= each.time:
                self.rows[key] = each
        self.before, self.replaced = before, False

    def _remember(self) -> State:
        return State(self.recipe, dict(self.rows), "")

    def _go_back(self, state: State) -> None:
        self.recipe, self.rows, self.before = state.recipe, dict(state.rows), None

    def _find_last_write(self) -> str:
        writes = self.open().timeline.select_completed().select_writes()
        return max(each.request_time for each in writes)

    def make_new(self, count: int) -> list[Version]:
        """Return records that there never were."""
        self.numbers += count
        return [self.make_version(number, self.time) for number in range(self.numbers - count, self.numbers)]

    def make_version(self, number: int, time: int) -> Version:
        """Return a version of a record."""
        return Version(number, time, self.recipe.make_row(number, time, self.lot))

    def open(self) -> HoodieTable:
        """Return the table as it is now."""
        return HoodieTable.open(self.path)

    # Questions -------------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Ask both, compare the answers, and a snapshot with the model."""
        table = self.open()
        expected = pa.Table.from_pylist([each.row for each in self.rows.values()], self.recipe.schema)
        self._compare("the model", table.scan(columns=self.recipe.schema.names).to_arrow(), expected)
        questions = list(self._make_questions(table))
        for each, answer in zip(questions, self._ask_java(questions), strict=True):
            if isinstance(answer, str):
                self._note("java", f"cannot answer {each.name}", answer)
                continue
            ours = each.answer(table)
            self._compare(each.name, ours, self._ask_again(each, ours, answer))
        if self.recipe.metadata:
            report = table.verify()
            assert report.is_right, self._describe(f"verify: {report}")
        if self.recipe.java_reads_changes:
            self._check_changes(table)

    def _make_questions(self, table: HoodieTable) -> Iterable[Question]:
        yield Question("snapshot", None, {}, lambda table: table.scan().to_arrow())
        listing = {"hoodie.metadata.enable": "false"}
        yield Question("snapshot, listed", None, listing, lambda table: table.scan(options=listing).to_arrow())
        where = make_filter(self.recipe.schema, [each.row for each in self.rows.values()], self.lot)
        yield Question(where, where, {}, lambda table: table.scan(filter=where).to_arrow())
        if self.recipe.merge_on_read:
            kind = {f"{_QUERY}.type": "read_optimized"}
            yield Question("read optimised", None, kind, lambda t: t.scan(query_type="read_optimized").to_arrow())
        times = self._list_times(table)
        at = self.lot.choice(times)
        yield Question(f"as of {at}", None, {"as.of.instant": at}, lambda table: table.scan(as_of=at).to_arrow())
        start, end = self._choose_range(times)
        options = self._make_range(start, end)
        yield Question(
            f"rows from {start} to {end}", None, options, lambda table: table.incremental(start, end).to_arrow()
        )

    def _check_changes(self, table: HoodieTable) -> None:
        start, end = self._choose_range(self._list_times(table))
        options = {**self._make_range(start, end), f"{_QUERY}.incremental.format": "cdc"}
        question = Question(f"changes from {start} to {end}", None, options, lambda t: t.changes(start, end).to_arrow())
        answer = self._ask_each(self.java, [question])[0]
        if isinstance(answer, str):
            self._note("java", f"cannot answer {question.name}", answer)
        else:
            self._compare(question.name, self._show(question.answer(table)), self._show(answer))

    def _show(self, changes: pa.Table) -> pa.Table:
        """Leave the columns of images that both engines spell alike."""
        shown = self.recipe.shown_columns
        for at, name in enumerate(changes.column_names):
            if name in ("before", "after"):
                images = [None if text is None else json.loads(text) for text in changes[name].to_pylist()]
                kept = [None if image is None else {key: image.get(key) for key in sorted(shown)} for image in images]
                texts = [None if image is None else json.dumps(image) for image in kept]
                changes = changes.set_column(at, name, pa.array(texts, pa.string()))
        return changes

    def _list_times(self, table: HoodieTable) -> list[str]:
        """Return the times of completed writes that queries may go back to."""
        writes = table.timeline.select_completed().select_writes()
        late = self.recipe.version >= _NEW_TIMES
        times = sorted((each.completion_time or "") if late else each.request_time for each in writes)
        return times[-RETAINED:] if self.cleaned else times

    def _choose_range(self, times: Sequence[str]) -> tuple[str, str]:
        start, end = sorted((self.lot.choice(times), self.lot.choice(times)))
        return start, end

    def _make_range(self, start: str, end: str) -> dict[str, str]:
        return {
            f"{_QUERY}.type": "incremental",
            f"{_READ}.begin.instanttime": start,
            f"{_READ}.end.instanttime": end,
        }

    def _ask_java(self, questions: Sequence[Question]) -> list[pa.Table | str]:
        """Return Java's answers, all from one job if it can answer them all; the text of its error for one."""
        try:
            return list(self.java.read_together(self.path, [(each.where, each.options) for each in questions]))
        except JavaHudiError:
            return self._ask_each(self.java, questions)

    def _ask_each(self, java: JavaSession, questions: Sequence[Question]) -> list[pa.Table | str]:
        answers: list[pa.Table | str] = []
        for each in questions:
            options = {name.replace(".", "__"): value for name, value in each.options.items()}
            try:
                answers.append(java.read(self.path, where=each.where, **options))
            except JavaHudiError as error:
                answers.append(str(error)[:500])
        return answers

    def _ask_again(self, question: Question, ours: pa.Table, answer: pa.Table) -> pa.Table:
        """Return Java's answer; where it differs, that to the question alone, and then that of a new process.

        Spark may answer otherwise where it answers all in one job, and where its session wrote the table: seed 393
        gets two versions of a row for one key there, by a filter on the key of a slice with Parquet log blocks.
        """
        if not differences(ours, answer):
            return answer
        [alone] = self._ask_each(self.java, [question])
        self._note("java", f"answers alone: {question.name}", alone if isinstance(alone, str) else len(alone))
        if not isinstance(alone, str) and not differences(ours, alone):
            return alone
        with self.java.open_another() as session:
            [anew] = self._ask_each(session, [question])
        self._note("java", f"answers anew: {question.name}", anew if isinstance(anew, str) else len(anew))
        return answer if isinstance(anew, str) else anew

    def _compare(self, what: str, ours: pa.Table, theirs: pa.Table) -> None:
        wrong = differences(ours, theirs)
        assert not wrong, self._describe(f"{what}: " + "\n".join(wrong))
        self.compared += 1

    def _find_partition(self, version: Version) -> Key:
        return tuple(version.row[name] for name in self.recipe.partitions)

    def _note(self, who: str, what: str, how: object) -> None:
        self.done.append(f"{who}: {what}: {how}")

    def _describe(self, text: str) -> str:
        return "\n".join([text, str(self.recipe), *self.done])


def run_history(java: JavaSession, path: Path, recipe: Recipe, steps: int) -> History:
    """Make a table, change it some times, and compare all answers after every other step."""
    history = History(java, path, recipe, random.Random(f"history {recipe.seed}"))
    history.begin()
    for step in range(steps):
        history.act()
        if step % 2:
            history.check()
    return history
