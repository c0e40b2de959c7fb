"""Records on their way into a new partition of the metadata table, and its file groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Groups = npt.NDArray[np.int64]


class Portion(NamedTuple):
    """Records (``key`` and columns of HoodieMetadataRecord), and the number of each one's file group."""

    records: pa.Table
    groups: Groups


class GroupPlan(NamedTuple):
    """The file groups of a new partition: ``file_ids``, and where those of each partition of the table begin and how
    many there are, for a partitioned record index.
    """

    file_ids: tuple[str, ...]
    by_partition: Mapping[str, tuple[int, int]]
