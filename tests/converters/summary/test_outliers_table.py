from __future__ import annotations

import io

from alike import of_calls, of_waits
from stallscope.converters.model import Profile
from stallscope.converters.summary.render import render
from stallscope.converters.summary.summarize import summarize


def lines(profile: Profile, width: int = 80) -> list[str]:
    file = io.StringIO()
    render(summarize(profile), file, width=width, color=False)
    return file.getvalue().splitlines()


def test_a_row_per_rank_under_the_median() -> None:
    shown = lines(of_calls())
    at = next(i for i, line in enumerate(shown) if "Rank (time and mean" in line)
    text = [" ".join(line.split()) for line in shown[at:]]
    assert text[0] == "Rank (time and mean: of cuMemAlloc_v2);"
    assert text[1] == "In calls Time Mean Blocked * stands out"
    assert text[2] == "20.4 ms 18.4 ms 1.84 ms 50.0 % median of 8"
    assert text[3] == "20.0 ms 18.0 ms 1.80 ms 50.0 % rank 0 (pid 107)"
    assert text[6] == "102 ms* 91.3 ms* 9.13 ms* 90.0 %* rank 3 (pid 104)"
    assert "rank 7 (pid 100)" in text[10]
    assert max(map(len, shown[at : at + 11])) <= 80


def test_many_processes_show_those_that_stand_out() -> None:
    shown = lines(of_calls(slow=30, number=64))
    at = next(i for i, line in enumerate(shown) if "median of 64" in line)
    assert "rank 30 (pid 133)" in shown[at + 1]
    assert "63 more" in shown[at + 2]


def test_processes_that_are_no_ranks_have_rows_if_one_stands_out() -> None:
    assert "train (104)" in "\n".join(lines(of_calls(ranks=False)))
    profile = of_calls(ranks=False, slow=99)
    text = "\n".join(lines(profile))
    assert "median of 8" in text
    assert "8 processes: none stands out" in text


def test_the_one_that_waits_least_is_told() -> None:
    text = "\n".join(lines(of_waits(dict.fromkeys(range(8), 80) | {3: 10})))
    assert "10.0 %*" in text
    assert "rank 3 waits least: the others may wait for it" in text
    assert "waits least" not in "\n".join(lines(of_waits(dict.fromkeys(range(8), 10) | {3: 80})))
    assert "waits least" not in "\n".join(lines(of_waits(dict.fromkeys(range(8), 80))))


def test_names_are_hostile() -> None:
    text = "\n".join(lines(of_calls(ranks=False, name="\x1b[2J\udcff")))
    assert "\x1b" not in text
    assert "median of 8" in text
