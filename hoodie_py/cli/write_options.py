"""Options of the subcommands that write, and their conversion to Hudi's writer options."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from hoodie_py.cli.options import split_pairs
from hoodie_py.options.write import METADATA_MODE

if TYPE_CHECKING:
    from hoodie_py.formats.table_config import TableConfig
    from hoodie_py.reader.merger import RecordMerger


class MetadataMode(StrEnum):
    """What a write does with a metadata table."""

    auto = "auto"
    disable = "disable"
    refuse = "refuse"


HudiOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option", metavar="K=V", help="Hudi's writer option, such as hoodie.write.lock.provider=...; may be repeated."
    ),
]
Timezone = Annotated[
    str | None,
    typer.Option("--timezone", metavar="ZONE", help="Zone of new instants if the timeline zone is LOCAL; default UTC."),
]
Metadata = Annotated[
    MetadataMode | None,
    typer.Option("--metadata-mode", help="Metadata table: update it (auto), disable it, or refuse to write."),
]
Merger = Annotated[
    str | None, typer.Option("--merger", metavar="MODULE.CLASS", help="The RecordMerger of a table that needs one.")
]
OverrideMerger = Annotated[
    bool,
    typer.Option("--override-merger", help="Use --merger although it is not the table's; the result is stored."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Write nothing; print what would be done, and why.")]


def parse_hudi_options(pairs: Sequence[str] | None, metadata_mode: MetadataMode | None = None) -> dict[str, str]:
    """Return Hudi's writer options from ``--option``; an option of the command itself takes precedence.

    Raises:
        typer.BadParameter: an entry is not K=V.
    """
    options = dict(split_pairs(pairs, "--option", ", such as hoodie.write.lock.provider=..."))
    if metadata_mode is not None:
        options[METADATA_MODE] = metadata_mode.value
    return options


def load_merger(config: TableConfig, path: str | None, *, override: bool = False) -> type[RecordMerger] | None:
    """Return the class that ``--merger`` names; None if there is no such option.

    Raises:
        InvalidQueryError: the class does not exist, or it is not the table's merger and ``override`` is false.
    """
    if path is None:
        return None
    from hoodie_py.reader.registry import import_merger
    from hoodie_py.writer.compaction_merger import check_merger

    merger = import_merger(path)
    check_merger(config, merger, override=override)
    return merger
