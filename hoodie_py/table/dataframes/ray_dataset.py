"""A scan as a Ray dataset: one read task for each file slice, which Ray schedules.

Importing it raises ModuleNotFoundError if Ray is missing; callers import Ray by name first.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa
import ray.data
from ray.data.block import BlockMetadata

from hoodie_py.table.dataframes.source import RowSource, TaskSource
from hoodie_py.table.dataframes.task_reads import read_tables


class HudiDatasource(ray.data.Datasource):  # type: ignore[misc]
    """The tasks of a scan, for Ray's workers."""

    def __init__(self, tasks: list[TaskSource], schema: pa.Schema) -> None:
        super().__init__()
        self._tasks = tasks
        self._schema = schema

    def get_name(self) -> str:
        """Return the name that Ray's plans show."""
        return "Hudi"

    def estimate_inmemory_data_size(self) -> int | None:
        """Return the size of the files in bytes; rows in memory take more."""
        return sum(task.size for task in self._tasks)

    def get_read_tasks(self, parallelism: int, *_: Any, **__: Any) -> list[ray.data.ReadTask]:
        """Return a read task for each file slice, however many Ray asks for: a slice is read whole."""
        return [
            ray.data.ReadTask(
                partial(read_tables, task),
                BlockMetadata(num_rows=None, size_bytes=task.size, exec_stats=None, input_files=None),
                schema=self._schema,
            )
            for task in self._tasks
        ]


def make_ray_dataset(source: RowSource) -> ray.data.Dataset:
    """Return a Ray dataset of a scan; nothing is read yet."""
    tasks = list(source.tasks())
    if not tasks:
        return ray.data.from_arrow(source.schema.empty_table())
    found = ray.data.read_datasource(HudiDatasource(tasks, source.schema))
    return found if source.limit is None else found.limit(source.limit)
