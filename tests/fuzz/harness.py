"""One atheris run over one parser, in a process of its own: ``python -m tests.fuzz.harness NAME [libFuzzer options]``.

Only hoodie_py is instrumented. An input on which the parser fails is written by libFuzzer as an artifact.
"""

from __future__ import annotations

import sys

from tests.fuzz.parsers import NAMES, load


def main(arguments: list[str]) -> None:
    """Fuzz until libFuzzer's options say to stop."""
    import atheris  # type: ignore[import-not-found, import-untyped, unused-ignore]  # an extra of its own: only this process needs it

    name, *options = arguments
    if name not in NAMES:
        sys.exit(f"no parser {name}; there are {', '.join(NAMES)}")
    with atheris.instrument_imports(include=["hoodie_py"]):
        parser = load(name)
    for seed in parser.seeds():
        parser.parse(seed)  # what is imported or built on first use is no part of an input's time
    atheris.Setup([f"fuzz-{name}", *options], parser.parse)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
