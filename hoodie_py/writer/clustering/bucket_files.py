"""Where the rows of a bucket go when it splits, merges or is written anew: by their keys' hashes, as writers look for
them later (Hudi ``SparkConsistentBucketClusteringExecutionStrategy``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import from_numpy
from hoodie_py.errors import InvalidTableError
from hoodie_py.formats.config.hashing_metadata import HashingMetadata
from hoodie_py.options.write import BUCKET_HASH_FIELD
from hoodie_py.reader.record.record_key import RecordKeys
from hoodie_py.writer.index.bucket import find_hash_ranges


@dataclass(frozen=True, slots=True)
class BucketTargets:
    """The new file groups of a group of the plan; ``ranges`` are those after the clustering. ``hash_fields`` are those
    of the key that choose the bucket.
    """

    ranges: HashingMetadata
    file_ids: tuple[str, ...]
    hash_fields: tuple[str, ...]
    keys: RecordKeys

    def divide(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Divide rows among the file groups, and keep their order.

        Raises:
            InvalidTableError: a key lies in another bucket than its hash says.
        """
        for batch in batches:
            owners = self._find_owners(batch)
            for number, file_id in enumerate(self.file_ids):
                at = np.flatnonzero(owners == number)
                if len(at):
                    yield file_id, batch if len(at) == batch.num_rows else batch.take(from_numpy(at))

    def _find_owners(self, batch: pa.RecordBatch) -> np.ndarray:
        keys = self.keys.read_keys(batch)
        places = find_hash_ranges(pa.chunked_array([keys]), self.hash_fields, self.ranges.bounds)
        numbers = {file_id: number for number, file_id in enumerate(self.file_ids)}
        by_place = np.array([numbers.get(each, -1) for each in self.ranges.file_ids], np.int64)
        owners: np.ndarray = by_place[places]
        astray = np.flatnonzero(owners < 0)
        if len(astray):
            raise InvalidTableError(
                "A key lies in another bucket than its hash says, so its bucket cannot be split or merged.",
                key=keys[int(astray[0])].as_py()[:200],
                hint=f"Set {BUCKET_HASH_FIELD} to what the table was written with.",
            )
        return owners
