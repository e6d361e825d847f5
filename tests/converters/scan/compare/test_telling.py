from __future__ import annotations

import json

from compare_profiles import run
from scans import HOSTILE
from stallscope.converters.model import Profile
from stallscope.converters.scan.compare.comparing import compare
from stallscope.converters.scan.compare.telling import lines, to_json
from summary_profiles import SECOND


def test_hostile_names() -> None:
    made = compare([run(100, name=HOSTILE)], [run(400, name=HOSTILE)])
    text = "\n".join(lines(made))
    assert "\x1b" not in text
    assert "\u202e" not in text
    json.dumps(to_json(made)).encode("ascii")
    text.encode()


def test_report_fits_a_screen() -> None:
    few, many = ([run(ms, pids=(i,), name=f"p{i}") for i in range(40)] for ms in (100, 400))
    one, other = Profile([], duration_ns=10 * SECOND), Profile([], duration_ns=10 * SECOND)
    one.slices = [each.slices[0] for each in few[:20]]
    other.slices = [each.slices[0] for each in many]
    assert len(list(lines(compare([one], [other])))) <= 40
