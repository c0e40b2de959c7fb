"""Keep writes away from partitions whose path readers decode to another value than the one it was made from.

Readers decode ``%XX`` in a partition's path, and read the text after an equals sign, even if the table's paths are not
encoded (``split_partition_path``, as in Java's reader). So in such a table the rows of the folder ``a%41b`` are shown
with the value ``aAb``. If rows that a query returned were written again, they would go to a folder ``aAb`` of their
own, so every key would exist twice, and deletes of them would find nothing. Java does both. Here all three are refused:
the values (``KeyGenerator``), rows for the value that is shown, and changes of such rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.names import unescape_partition_value
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.view.partition_values import list_decoded_fields, spells_values

_HINT = (
    "Write the rows of that partition to a table whose paths are URL-encoded, or delete them by a filter or by "
    "delete_partition and write them with other values."
)


def refuse_twins(snapshot: Snapshot, paths: Sequence[str]) -> None:
    """Refuse rows for partitions whose values readers also show for the rows of other folders.

    One listing of each folder above the paths finds these folders; no index contains their names.

    Raises:
        UnsupportedFeatureError: names both paths.
        StorageError: a listing failed.
    """
    if snapshot.instant is None or not _may_be_misread(snapshot.config):
        return
    depth = len(snapshot.config.partition_fields)
    wanted = {path: tuple(map(_show, path.split("/"))) for path in paths if path.count("/") == depth - 1}
    folders: list[tuple[tuple[str, ...], str]] = [((), "")] if wanted else []  # with what readers show of their paths
    for level in range(depth):
        heads = {shown[: level + 1] for shown in wanted.values()}
        folders = [
            ((*shown, _show(name)), f"{folder}/{name}" if folder else name)
            for shown, folder in folders
            for name in _list_folders(snapshot, folder)
            if (*shown, _show(name)) in heads
        ]
    for path, shown in wanted.items():
        twin = next((folder for each, folder in folders if each == shown and folder != path), None)
        if twin is not None:
            raise UnsupportedFeatureError(
                f"Writing rows of the partition {path!r}, whose value readers show for the rows of {twin!r}, too: keys "
                "would be there twice.",
                hint=_HINT,
                table=snapshot.config.name,
                partition=twin,
            )


def refuse_changes(config: TableConfig, paths: Iterable[str]) -> None:
    """Refuse to change rows of partitions that readers show with another value: the new rows would get that value.

    Raises:
        UnsupportedFeatureError: names the path and the value.
    """
    for path in paths:
        if list_decoded_fields(config, path):
            raise UnsupportedFeatureError(
                f"Changing rows of the partition {path!r}, which readers show with the value "
                f"{'/'.join(map(_show, path.split('/')))!r}, as it looks percent-encoded.",
                hint=_HINT,
                table=config.name,
                partition=path,
            )


def _may_be_misread(config: TableConfig) -> bool:
    return bool(config.partition_fields) and not config.url_encode_partitioning and spells_values(config)


def _show(segment: str) -> str:
    """Return the text that readers show as the value of a path's segment."""
    return unescape_partition_value(segment.split("=", 1)[-1])


def _list_folders(snapshot: Snapshot, folder: str) -> list[str]:
    return sorted(name.removesuffix("/") for name in snapshot.files.list_names(folder) if name.endswith("/"))
