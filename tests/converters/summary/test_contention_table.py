from __future__ import annotations

import io

import pytest
from processes import MS, SECOND, crowd, latencies, pools, process, profile, threads
from stallscope.converters.facts import thresholds
from stallscope.converters.facts.contention import contention_of
from stallscope.converters.model import Profile
from stallscope.converters.summary.contention_table import rows
from stallscope.converters.summary.render import render
from stallscope.converters.summary.summarize import summarize

WIDE = """\
Threads  New/s  Ended/s  Switches/s  Queued: mean        p99  Runnable  Cores: used  allowed  Process (Runnable: of \
its threads' time)
     34      0        0         360        128 ms  ≤ 4.19 ms    75.3 %         3.20     4.00  2 × train
"""
NARROW = """\
Runnable  Cores: used  allowed  Process (Runnable: of its threads' time)
  75.3 %         3.20     4.00  2 × train
                                34 threads, waits for a core: mean 128 ms, p99 ≤
                                4.19 ms
"""


def shown(made: Profile, width: int | None = None) -> str:
    file = io.StringIO()
    render(summarize(made), file, width=width)
    return file.getvalue()


def test_table_and_sentence() -> None:
    text = shown(crowd())
    assert WIDE in text
    assert text.index("The threads of 2 × train outnumber") < text.index("Traced ") < text.index(WIDE)
    assert text.index(WIDE) < text.index("Lost:")


def test_narrow_table() -> None:
    assert NARROW in shown(crowd(), 80)
    assert max(map(len, shown(crowd(), 80).splitlines())) <= 80


def test_created_and_ended() -> None:
    assert "  4,001    400      400         400" in shown(pools())


def test_rates_below_one_and_waits_above_all_bounds() -> None:
    made = profile(100)
    process(made, 7, "x", waits=(*[0] * 23, 1))
    threads(made, 7, "x", "x", wall=100 * SECOND, on_cpu=90 * SECOND, runnable=6 * SECOND)
    threads(made, 7, "x", "y", 33, wall=MS, creator=7, exited=True)
    made.threads[0].switches = 4
    assert "     34    0.3      0.3        <0.1        6.00 s  > 4.29 s" in shown(made)


def test_what_is_not_known() -> None:
    made = profile(0)
    process(made, 7, "x", cpus="")
    threads(made, 7, "x", "x", on_cpu=SECOND)
    assert "      1      -        -           -             -    -     0.0 %            -        -  x" in shown(made)


def test_switches_that_nobody_counted() -> None:
    made = profile(1)
    process(made, 7, "x")
    threads(made, 7, "x", "x", wall=SECOND, on_cpu=SECOND // 2, runnable=SECOND // 2)
    assert "      1      0        0           -             -    -    50.0 %" in shown(made)


def test_those_who_do_nothing_are_left_out() -> None:
    made = profile()
    process(made, 7, "sleeper", waits=latencies(us_5=10))
    threads(made, 7, "sleeper", "sleeper", 3, on_cpu=MS, switches=10)
    assert "Queued" not in shown(made)
    threads(made, 7, "sleeper", "w", creator=7)
    assert "Queued" in shown(made)


def test_no_table_without_processes() -> None:
    made = crowd()
    made.processes = []
    assert "Queued" not in shown(made)


@pytest.mark.parametrize("names", [thresholds.CONTENTION_ROWS, thresholds.CONTENTION_ROWS + 1, 300])
def test_table_is_bounded(names: int) -> None:
    made = profile()
    for i in range(names):
        name = f"p{'abcdefghijklmnopqrstuvwxyz'[i % 26]}{'x' * (i // 26)}"
        process(made, 10 * i + 1, name)
        threads(made, 10 * i + 1, name, "x", on_cpu=SECOND - i)
    found = rows(contention_of(made))
    assert len(found) == min(names, thresholds.CONTENTION_ROWS + 1)
    assert sum(group.threads for group in found) == names
    assert [group.on_cpu for group in found[: thresholds.CONTENTION_ROWS]] == [
        SECOND - i for i in range(thresholds.CONTENTION_ROWS)
    ]
    if names > thresholds.CONTENTION_ROWS:
        assert found[-1].process == ("1 more name" if names == thresholds.CONTENTION_ROWS + 1 else "295 more names")


def test_hostile_names() -> None:
    made = profile()
    process(made, 7, "\x1b[2J[bold]x\n", environment={"OMP_NUM_THREADS": "\x1b[31m"}, cpus="0")
    threads(made, 7, "\x1b[2J[bold]x\n", "x", 4, on_cpu=2 * SECOND, runnable=8 * SECOND)
    text = shown(made)
    assert "\x1b" not in text
    assert "\\x1b[2J[bold]x\\x0a" in text
    assert "OMP_NUM_THREADS=\\x1b[31m;" in text
