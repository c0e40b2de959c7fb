"""The ``hoodie`` command: inspects, reads, writes and compacts Hudi tables.

Each subcommand has its own module. Importing this package loads typer and nothing heavier; a subcommand imports
everything else when it runs. So ``hoodie --help`` is fast.
"""

from __future__ import annotations

from hoodie_py.cli.app import main

__all__ = ["main"]
