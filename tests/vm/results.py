"""Results of checks, kept as files: one for each check on each kernel, so that any of them can be run anew."""

from __future__ import annotations

import json
import subprocess
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "vm" / "results"


@dataclass(frozen=True)
class Result:
    """Result of one check on one kernel. ``figures``: what it measured; ``failure``: why it failed, or empty.

    ``date``: of the run, YYYY-MM-DD in UTC; ``commit``: of the checkout, with a + if it had changes.
    """

    kernel: str
    version: str
    check: str
    figures: str
    failure: str
    boot_seconds: float
    seconds: float
    tries: int
    log: str
    date: str = ""
    commit: str = ""

    @property
    def ok(self) -> bool:
        return not self.failure


def save(result: Result) -> None:
    """Saves a result in place of what was known of this check on this kernel."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    _file(result.kernel, result.check).write_text(json.dumps(asdict(result), indent=1))


def latest(kernel: str, check: str) -> Result | None:
    """None: it was never run."""
    file = _file(kernel, check)
    return Result(**json.loads(file.read_text())) if file.exists() else None


def today() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%d")


@lru_cache
def commit() -> str:
    """Commit of this checkout, as it is when this is first called. What docs/ has does not count as a change."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs")
    return git("rev-parse", "--short", "HEAD") + ("+" if changed else "")


def _file(kernel: str, check: str) -> Path:
    return FOLDER / f"{kernel}.{check}.json"
