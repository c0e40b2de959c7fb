"""What the writers of a run wrote down."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from integration.together.worker import UNKNOWN


@dataclass(frozen=True, slots=True)
class Attempt:
    """A write that was tried; ``end`` is done, refused or unknown."""

    name: str
    kind: str
    keys: tuple[str, ...]
    ts: int
    end: str


@dataclass(slots=True)
class Looks:
    """Reads while the run went on."""

    right: int = 0
    wrong: list[str] = field(default_factory=list)


def read_journal(folder: Path) -> tuple[list[Attempt], Looks, list[str]]:
    """Return all writes in the order of each writer, all reads, and what else went wrong."""
    attempts: list[Attempt] = []
    looks, problems = Looks(), []
    for path in sorted(folder.glob("w*.jsonl")):
        lines = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
        ends: dict[str, Any] = {line["of"]: line for line in lines if "of" in line}
        for line in lines:
            if "write" in line:
                end = ends.get(line["write"], {}).get("end", UNKNOWN)  # killed before it knew
                attempts.append(Attempt(line["write"], line["kind"], tuple(line["keys"]), line["ts"], end))
            elif line.get("look") == "right":
                looks.right += 1
            elif "look" in line:
                looks.wrong.append(f"{path.stem}: {line}")
        said = path.with_suffix(".log").read_text(errors="replace")
        if "Traceback" in said:
            problems.append(f"{path.stem} ended with an error: {said[-1500:]}")
    return attempts, looks, problems
