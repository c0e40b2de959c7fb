"""Coverage-guided fuzzing of the parsers: ``python -m tests.fuzz.run --minutes 10 [names]``.

Needs the extra ``fuzz`` (atheris). Two parsers at a time, each in its own process with limits of memory (1 GB) and time
(5 s an input). What a run learns stays below ``--folder`` and is where the next run starts. A finding is minimised and
lies in ``<folder>/<name>/found``; put it into ``tests/fuzz/findings/<name>-<what>.bin`` together with the fix, and
``test_parsers.py`` repeats it for ever.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.parsers import NAMES, load

LONGEST_INPUT = 1 << 16
LIMITS = ("-rss_limit_mb=1024", "-timeout=5", f"-max_len={LONGEST_INPUT}")
MINIMISING = ("-minimize_crash=1", "-max_total_time=60", *LIMITS)
_STATUS = re.compile(r"^#(\d+)\s.*?cov: (\d+) ft: (\d+) corp: (\d+)/(\S+)", re.MULTILINE)
_UNITS = re.compile(r"stat::number_of_executed_units:\s*(\d+)")
_PEAK = re.compile(r"stat::peak_rss_mb:\s*(\d+)")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of fuzzing one parser; ``findings`` are the inputs on which it failed."""

    name: str
    seconds: float
    executions: int
    edges: int
    features: int
    corpus: int
    peak_mb: int
    findings: tuple[Path, ...]
    log: Path

    def __str__(self) -> str:
        verdict = f"FAILED on {len(self.findings)} inputs, see {self.log}" if self.findings else "ok"
        return (
            f"{self.name:<16}{self.seconds:>7.0f} s {self.executions:>10} executions {self.edges:>6} edges"
            f"{self.features:>7} features {self.corpus:>6} inputs {self.peak_mb:>5} MB  {verdict}"
        )


def fuzz(name: str, minutes: float, folder: Path) -> Outcome:
    """Fuzz one parser in a process of its own."""
    place = folder / name
    corpus, found = place / "corpus", place / "found"
    corpus.mkdir(parents=True, exist_ok=True)
    found.mkdir(exist_ok=True)
    for number, seed in enumerate(load(name).seeds()):
        (corpus / f"seed-{number:03}").write_bytes(seed)
    known = set(found.iterdir())
    log = place / "log.txt"
    started = time.monotonic()
    command = [
        sys.executable, "-X", "faulthandler", "-m", "tests.fuzz.harness", name, f"-max_total_time={minutes * 60:.0f}",
        *LIMITS, "-print_final_stats=1", f"-artifact_prefix={found}/", str(corpus),
    ]  # fmt: skip
    with log.open("wb") as out:
        code = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, check=False).returncode
    seconds = time.monotonic() - started
    text = log.read_text(errors="replace")
    findings = sorted(set(found.iterdir()) - known)
    if code and not findings:
        findings = [log]
    states = _STATUS.findall(text)
    _, edges, features, inputs, _ = states[-1] if states else (0, 0, 0, 0, 0)
    return Outcome(
        name, seconds, _last(_UNITS, text), int(edges), int(features), int(inputs), _last(_PEAK, text),
        tuple(_minimised(name, each, place) for each in findings), log,
    )  # fmt: skip


def _last(pattern: re.Pattern[str], text: str) -> int:
    found = pattern.findall(text)
    return int(found[-1]) if found else 0


def _minimised(name: str, finding: Path, place: Path) -> Path:
    """Make the input as small as a minute allows; the input itself where that does not work."""
    if finding.suffix == ".txt":
        return finding
    smaller = place / f"minimised-{finding.name}"
    command = [sys.executable, "-m", "tests.fuzz.harness", name, *MINIMISING, f"-exact_artifact_path={smaller}"]
    subprocess.run([*command, str(finding)], capture_output=True, check=False, timeout=300)
    return smaller if smaller.exists() else finding


def main(arguments: Sequence[str] | None = None) -> int:
    """Fuzz parsers and print how it went; 1 when one failed."""
    options = argparse.ArgumentParser(prog="python -m tests.fuzz.run", description="Fuzz the parsers with atheris.")
    options.add_argument("--minutes", type=float, default=10, help="for each parser (default 10)")
    options.add_argument(
        "--folder", type=Path, default=Path(".fuzz"), help="corpora, logs and findings (default .fuzz)"
    )
    options.add_argument("--at-once", type=int, default=2, help="parsers fuzzed at the same time (default 2)")
    options.add_argument("names", nargs="*", help=f"some of: {', '.join(NAMES)} (default all)")
    chosen = options.parse_args(arguments)
    unknown = set(chosen.names) - set(NAMES)
    if unknown:
        options.error(f"no parser {', '.join(sorted(unknown))}")
    if importlib.util.find_spec("atheris") is None:
        options.error("atheris is not installed: pip install 'atheris>=3.0'")
    failed = False
    with ThreadPoolExecutor(chosen.at_once) as pool:
        runs = [pool.submit(fuzz, name, chosen.minutes, chosen.folder.resolve()) for name in chosen.names or NAMES]
        for run in runs:
            outcome = run.result()
            failed |= bool(outcome.findings)
            print(outcome, flush=True)
            for finding in outcome.findings:
                print(f"    {finding}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
