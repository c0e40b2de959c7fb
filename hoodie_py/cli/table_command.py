"""Declare a subcommand about one table: ``table_command`` gives it the table and the options that all have.

The subcommand's function takes a ``TableCommand`` and its own arguments. Typer sees the table in place of the first,
and the common options behind the others: ``--storage-option``, ``--endpoint-url``, ``--json`` and ``--debug``, and
before them what the decorator names. Errors of the function are reported, and end the process with status 1.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, get_type_hints

from hoodie_py.cli.console import report_errors
from hoodie_py.cli.options import (
    AsJson,
    Debug,
    EndpointUrl,
    FilterTimezone,
    HudiOptions,
    Metadata,
    StorageOptions,
    TableUri,
    Timezone,
    parse_hudi_options,
    parse_storage_options,
)

if TYPE_CHECKING:
    from hoodie_py import HoodieTable
    from hoodie_py.table.snapshot import Snapshot

Further = Literal["option", "metadata_mode", "timezone", "filter_timezone"]

_FURTHER: Mapping[str, Any] = {
    "option": HudiOptions, "metadata_mode": Metadata, "timezone": Timezone, "filter_timezone": FilterTimezone
}  # fmt: skip
_ALWAYS: Mapping[str, Any] = {
    "storage_option": StorageOptions, "endpoint_url": EndpointUrl, "as_json": AsJson, "debug": Debug
}  # fmt: skip
_FLAGS = {"as_json", "debug"}


@dataclass(frozen=True, slots=True)
class TableCommand:
    """What the command line says of a table; ``options`` are Hudi's, of ``--option`` and ``--metadata-mode``."""

    uri: str
    as_json: bool
    timezone: str | None = None
    options: dict[str, str] = field(default_factory=dict)
    storage_options: dict[str, Any] = field(default_factory=dict, repr=False)

    def open(self) -> HoodieTable:
        """Open the table; errors as for ``HoodieTable.open``."""
        from hoodie_py import HoodieTable

        return HoodieTable.open(self.uri, self.storage_options, self.timezone)

    def open_snapshot(self) -> Snapshot:
        """Open the table's newest snapshot, without what ``HoodieTable`` imports; errors as for ``open_snapshot``."""
        from hoodie_py.table.snapshot import open_snapshot

        return open_snapshot(self.uri, storage_options=self.storage_options, timezone=self.timezone)


def table_command(*further: Further) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the decorator of a subcommand; ``further`` names common options that not every subcommand has."""
    common: dict[str, Any] = {**{str(name): _FURTHER[name] for name in further}, **_ALWAYS}

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @wraps(function)
        def run(table: str, **given: Any) -> None:
            known = {name: given.pop(name) for name in common}
            command = TableCommand(
                table,
                known["as_json"],
                known.get("timezone") or known.get("filter_timezone"),
                parse_hudi_options(known.get("option"), known.get("metadata_mode")),
                parse_storage_options(known["storage_option"], known["endpoint_url"]),
            )
            with report_errors(known["debug"]):
                function(command, **given)

        _declare(run, function, common)
        return run

    return decorate


def _declare(run: Callable[..., None], function: Callable[..., None], common: Mapping[str, Any]) -> None:
    """Give ``run`` the signature that typer reads: names, types and defaults."""
    hints = get_type_hints(function, include_extras=True)
    _, *own = inspect.signature(function).parameters.values()
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [
        inspect.Parameter("table", kind, annotation=TableUri),
        *(each.replace(annotation=hints[each.name]) for each in own),
    ]
    for name, type_ in common.items():
        default = False if name in _FLAGS else None
        parameters.append(inspect.Parameter(name, kind, default=default, annotation=type_))
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
