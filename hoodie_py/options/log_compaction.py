"""Options of log compaction (Java Hudi HoodieCompactionConfig). The defaults are those of Hudi 1.2.0."""

from __future__ import annotations

from hoodie_py.options.parse import Flag, Number, Option

BLOCKS_THRESHOLD = Number("hoodie.log.compaction.blocks.threshold", 5, least=1)  # fewer log files stay as they are
INLINE_LOG_COMPACTION = Flag("hoodie.log.compaction.inline", default=False)

OPTIONS: tuple[Option, ...] = tuple(each for each in globals().values() if isinstance(each, Option))
