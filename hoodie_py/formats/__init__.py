"""Hudi's on-disk formats: bytes in, typed values out.

Nothing here does I/O or knows tables: names, table properties, the timeline and its metadata files, log files and their
blocks, Avro and Parquet as Hudi writes them. Every length is checked before it is used. Wrong bytes raise
``CorruptFileError``, contradictory metadata ``InvalidTableError``.
"""
