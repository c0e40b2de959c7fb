"""Options of the subcommands that write, and Hudi's writer options that they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer

from hoodie_py.formats.option_keys import CUSTOM_MERGER_CLASSES
from hoodie_py.formats.write_keys import METADATA_MODE


class MetadataMode(StrEnum):
    """What to do about a metadata table."""

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
    typer.Option("--timezone", metavar="ZONE", help="Zone of new instants where the table says LOCAL; UTC otherwise."),
]
Metadata = Annotated[
    MetadataMode | None,
    typer.Option("--metadata-mode", help="A metadata table: keep it right (auto), switch it off, or refuse."),
]
Merger = Annotated[
    str | None, typer.Option("--merger", metavar="MODULE.CLASS", help="The RecordMerger of a table that needs one.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Write nothing; print what would be done, and why.")]


def hudi_options(
    pairs: Sequence[str] | None, metadata_mode: MetadataMode | None = None, merger: str | None = None
) -> dict[str, str]:
    """Return Hudi's writer options as given; an option of the command itself wins.

    Raises:
        typer.BadParameter: an entry is not K=V.
    """
    options: dict[str, str] = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise typer.BadParameter("expected K=V, such as hoodie.write.lock.provider=...", param_hint="--option")
        options[key] = value
    if metadata_mode is not None:
        options[METADATA_MODE] = metadata_mode.value
    if merger:
        options[CUSTOM_MERGER_CLASSES] = merger
    return options
