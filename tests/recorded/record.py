"""Keeps captures for test_recorded.py: NAME=PATH, or PATH, whose name is the capture's."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from stage import FOLDERS
from stallscope.converters import pprof
from stallscope.converters.model import Frame, Profile, Sample, parts
from stallscope.converters.model.origins import ProcessOrigin
from stallscope.converters.model.processes import ProcessTimes

CAPTURES = Path(__file__).parent / "captures"
ROOT = str(Path(__file__).resolve().parents[2])
SOMEWHERE = "/srv/stallscope"
"""Stands for the folder of this checkout."""
JOB = "/srv/job"
"""Stands for the folder of a job."""
_OF_JOBS = re.compile(re.escape(FOLDERS) + r"\w+")
BEGIN = 1_700_000_000_000_000_000


def neutral(profile: Profile) -> Profile:
    """Profile without what tells of the machine."""
    frames: dict[Frame, Frame] = {}

    def frame_of(frame: Frame) -> Frame:
        if frame not in frames:
            module = frame.module and frame.module._replace(path=_elsewhere(frame.module.path))
            frames[frame] = frame._replace(name=_elsewhere(frame.name), module=module, file=_elsewhere(frame.file))
        return frames[frame]

    def text_of(_owner: str, _field: str, text: str, _part: Any) -> str:
        return _elsewhere(text)

    samples = [Sample(tuple(map(frame_of, stack)), values, labels) for stack, values, labels in profile.samples]
    changed: dict[str, Any] = {
        name: [parts.with_texts(part, text_of) for part in getattr(profile, name)] for name in parts.NAMES
    }
    above = {str(each) for origin in profile.origins for each in Path(origin.cgroup).parents} - {"/", "."}
    groups = above | {origin.cgroup for origin in profile.origins}
    changed["group_limits"] = [
        replace(each, cgroup="/job") if each.cgroup in groups else each for each in changed["group_limits"]
    ]
    changed["pressure"] = [each for each in changed["pressure"] if not each.cgroup or each.cgroup not in groups]
    changed["origins"] = [_of_job(each, changed["processes"]) for each in changed["origins"]]
    host = "host" if profile.host else ""
    comments = [
        _elsewhere(each) if isinstance(each, str) else parts.with_texts(each, text_of) for each in profile.comments
    ]
    # Without what the trace has recommended: that is judged again, too.
    return replace(
        profile,
        samples=samples,
        title=_elsewhere(profile.title),
        host=host,
        start_ns=BEGIN,
        comments=comments,
        display=None,
        **changed,
    )


def _of_job(origin: ProcessOrigin, traced: Sequence[ProcessTimes]) -> ProcessOrigin:
    """Origin without the processes that have started the traced ones, and without the names of their folders."""
    pids = {each.pid for each in traced}
    above = [each for each in origin.ancestors if each.pid in pids]
    return replace(origin, ancestors=above, cgroup="/job", executable=Path(origin.executable).name)


def _elsewhere(text: str) -> str:
    return _OF_JOBS.sub(JOB, text.replace(ROOT, SOMEWHERE))


def keep(name: str, path: Path) -> Path:
    """Writes captures/NAME.pb.gz."""
    CAPTURES.mkdir(exist_ok=True)
    with path.open("rb") as file:
        profile = neutral(pprof.load(file))
    kept = CAPTURES / f"{name}.pb.gz"
    with kept.open("wb") as file:
        pprof.save(profile, file)
    return kept


def main(arguments: list[str], say: Callable[[str], object] = print) -> None:
    for argument in arguments:
        name, _, path = argument.rpartition("=")
        kept = keep(name or Path(path).name.removesuffix(".pb.gz"), Path(path))
        say(f"{kept.name}: {kept.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
