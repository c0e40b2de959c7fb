"""Write new records as the first base file of a new file group (Hudi ``HoodieCreateHandle``)."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from hoodie_py.errors import HoodieError
from hoodie_py.formats.names import MarkerType, make_base_file_name
from hoodie_py.formats.timeline.commit_metadata import NO_COMMIT, WriteStat
from hoodie_py.writer.handles.data_file import CommitFacts, DataFile, TaskResult
from hoodie_py.writer.handles.markers import Marker
from hoodie_py.writer.handles.meta_columns import RowStamp, make_file_batches
from hoodie_py.writer.records import WriteRecords


@dataclass(frozen=True, slots=True)
class InsertTask:
    """Write one new base file."""

    facts: CommitFacts
    index: int
    partition_path: str
    file_id: str

    @property
    def group(self) -> tuple[str, str]:
        """Partition path and file id."""
        return self.partition_path, self.file_id

    def run(self, parts: Iterable[WriteRecords]) -> TaskResult:
        """Write the file; the rows keep their order.

        ``parts`` contain no deletes. A part is not used any more once the next one is requested.

        Raises:
            HoodieError: a value cannot be written, or the store refuses. Readers do not see what was written.
        """
        began = time.monotonic()
        name = make_base_file_name(self.file_id, self.facts.make_token(self.index), self.facts.instant)
        marker = Marker(self.partition_path, name, MarkerType.CREATE)
        stamp = RowStamp(self.facts.instant, self.index, self.partition_path, name)
        rows = 0
        try:
            self.facts.ensure_partition(self.partition_path)
            with DataFile(self.facts, marker) as file:
                writer = self.facts.open_base_writer(file.sink)
                for part in parts:
                    for batch in make_file_batches(part, self.facts.schema.arrow, stamp, rows):
                        writer.write(batch)
                        rows += batch.num_rows
                writer.close()
                size = file.publish()
        except HoodieError as error:
            raise error.locate(partition=self.partition_path or None) from error.__cause__
        stat = WriteStat(
            file_id=self.file_id,
            path=marker.path,
            prev_commit=NO_COMMIT,
            num_writes=rows,
            num_inserts=rows,
            total_write_bytes=size,
            partition_path=self.partition_path,
            file_size_in_bytes=size,
        )
        return TaskResult(stat, 0, time.monotonic() - began, writer.ranges)
