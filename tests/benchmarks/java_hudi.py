"""Whether Java Hudi takes part."""

from __future__ import annotations

import sys

from integration.java_hudi.environment import JavaHudi, JavaHudiMissingError, find_or_make


def java_hudi(wanted: bool) -> JavaHudi | None:
    """Return what runs Java Hudi; None where it is not wanted, or, after saying why, where Java or Maven is missing."""
    if not wanted:
        return None
    try:
        return find_or_make()
    except JavaHudiMissingError as missing:
        print(f"Java Hudi is left out: {missing}", file=sys.stderr, flush=True)
        return None
