"""Parquet base files and Parquet log blocks, with the footer that Hudi writes."""

# Codecs of base files with their range of levels, if any. They stand here because options need them without pyarrow.
CODECS: dict[str, range | None] = {"zstd": range(1, 23), "snappy": None, "gzip": range(1, 10), "uncompressed": None}
DEFAULT_CODEC = "snappy"
