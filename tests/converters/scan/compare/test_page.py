"""The page of a comparison as bytes. In a browser: tests/browser/test_compare_page.py."""

from __future__ import annotations

import io

from compare_profiles import run, with_steps
from lock_profiles import MS, lock
from scans import HOSTILE, scanned_host
from stallscope.converters.model import Profile
from stallscope.converters.scan.compare import page
from stallscope.converters.scan.compare.comparing import compare
from stallscope.converters.scan.compare.graph import graph_of


def written(before: list[Profile], after: list[Profile]) -> str:
    file = io.BytesIO()
    page.write(compare(before, after), graph_of(before, after), file)
    return file.getvalue().decode()


def test_tables_are_there_without_the_script() -> None:
    text = written([with_steps(run(100))], [with_steps(run(400), 12, 60)])
    assert "<strong>A step of train.py:step takes 77.0 ms instead of 45.0 ms" in text
    assert "<td>30.00</td><td>60.00</td><td>+30.00</td>" in text
    assert "<td>0.10</td><td>0.40</td><td>+0.30</td>" in text
    assert "There are no stacks on one of the sides" in text
    assert "http" not in text.replace("http-equiv", "")


def test_locks_have_a_table() -> None:
    before, after = run(100), run(400)
    before.locks, after.locks = [lock(time=300 * MS, waits=30)], [lock(time=1_500 * MS, waits=60)]
    text = written([before], [after])
    assert "<td>0.03</td><td>0.15</td><td>+0.12</td><td>10.0 ms</td><td>25.0 ms</td>" in text
    assert '<th scope="row">train: mutex table+0x40</th>' in text
    assert "Waits for locks" not in written([before], [before])


def test_the_graph_is_below() -> None:
    made = scanned_host(events=False)
    text = written([made], [made])
    assert text.index('id="compared"') < text.index('id="canvas"')
    assert "Verdicts that differ" not in text


def test_hostile_names() -> None:
    text = written([run(100, name=HOSTILE)], [run(400, name=HOSTILE)])
    assert "<script>alert" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text
