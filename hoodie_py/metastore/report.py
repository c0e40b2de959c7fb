"""The report of a sync with a catalog."""

from __future__ import annotations

from dataclasses import dataclass

from hoodie_py.runtime.wording import Sentence, format_count


@dataclass(frozen=True, slots=True)
class SyncedEntry(Sentence):
    """What a sync changed in one entry.

    Attributes:
        name: its name, with the database.
        is_new: whether the sync created it.
        columns: whether its columns changed.
        properties: names of the properties that changed.
        added: paths of the partitions that were added.
        moved: paths of the partitions whose folder changed.
        dropped: values of the partitions that were dropped, joined by slashes.
    """

    name: str
    is_new: bool = False
    columns: bool = False
    properties: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()

    @property
    def has_changed(self) -> bool:
        """Whether anything was written."""
        return self.is_new or self.columns or bool(self.properties or self.added or self.moved or self.dropped)

    def __str__(self) -> str:
        if not self.has_changed:
            return f"{self.name} is up to date."
        parts = [
            "its columns changed" if self.columns and not self.is_new else "",
            "its properties changed" if self.properties and not self.is_new else "",
            f"{format_count(len(self.added), 'partition')} added" if self.added else "",
            f"{format_count(len(self.moved), 'partition')} moved" if self.moved else "",
            f"{format_count(len(self.dropped), 'partition')} dropped" if self.dropped else "",
        ]
        said = ", ".join(filter(None, parts))
        return f"{self.name} is {'new' if self.is_new else 'updated'}{': ' if said else ''}{said}."


@dataclass(frozen=True, slots=True)
class SyncResult(Sentence):
    """What a sync did.

    Attributes:
        entries: the entries of the table.
        instant: request time of the newest commit that the catalog knows now.
        dry_run: whether nothing was written.

    Examples:
        >>> catalog.sync(trips, "lake").has_changed
        True
        >>> print(catalog.sync(trips, "lake"))
        lake.trips_ro is up to date. lake.trips_rt is up to date. lake.trips is up to date.
    """

    entries: tuple[SyncedEntry, ...]
    instant: str
    dry_run: bool = False

    @property
    def has_changed(self) -> bool:
        """Whether anything was written, or would be."""
        return any(each.has_changed for each in self.entries)

    def __str__(self) -> str:
        said = " ".join(map(str, self.entries))
        return f"Dry run: {said}" if self.dry_run else said
