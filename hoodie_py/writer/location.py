"""Where a table is, as Java Hudi would say it: clean and rollback plans name whole paths."""

from __future__ import annotations

from hoodie_py.files import TableFiles


def make_java_location(files: TableFiles) -> str:
    """Return the base path in the form in which Java's file systems open it, without credentials."""
    local = files.local_path("")
    if local is not None:
        return f"file:{local}"
    return f"s3a:{files.uri.removeprefix('s3:')}" if files.uri.startswith("s3:") else files.uri
