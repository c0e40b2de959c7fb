"""The ``hoodie`` command: looks into Hudi tables and reads them.

Every subcommand is a module of its own.  Importing this package loads typer and nothing heavier: a subcommand imports
what it works with when it runs, so that ``hoodie --help`` answers at once.
"""

from __future__ import annotations

from hoodie_py.cli.app import main

__all__ = ["main"]
