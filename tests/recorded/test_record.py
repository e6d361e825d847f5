"""Data that is taken out of captures that are kept."""

from __future__ import annotations

from record import JOB, ROOT, SOMEWHERE, neutral
from stage import FOLDERS
from stallscope.converters.model import Frame, Profile, Sample


def test_the_folders_of_a_checkout_and_of_a_job_get_other_names() -> None:
    stack = (Frame(f"f {FOLDERS}x1/f.js", file=f"{FOLDERS}x1_y/serve.py"), Frame("g", file=f"{ROOT}/tests/x.py"))
    kept = neutral(Profile(value_types=[], samples=[Sample(stack, (), ())], comments=[f"in {FOLDERS}x1_y/a"]))
    assert [frame.file for frame in kept.samples[0].stack] == [f"{JOB}/serve.py", f"{SOMEWHERE}/tests/x.py"]
    assert kept.samples[0].stack[0].name == f"f {JOB}/f.js"
    assert kept.comments == [f"in {JOB}/a"]
