"""Words for what recommended commands show."""

from __future__ import annotations

from next_steps import step_of
from stallscope.converters.model import next_step
from stallscope.converters.phrases.next_steps import tells


def test_each_code_has_words() -> None:
    told = [tells(step_of("trace-wall -a", code)) for code in next_step.CODES]
    assert len(set(told)) == len(told)
    assert not set(told) & set(next_step.CODES)


def test_processes_that_were_left_out() -> None:
    step = step_of("trace-wall -p 1 --children", next_step.LEFT_OUT)
    assert tells(step._replace(left_out=1)) == "also 1 process that was left out and ran meanwhile"
    assert tells(step._replace(left_out=1234)) == "also 1,234 processes that were left out and ran meanwhile"


def test_a_module_is_asked_for() -> None:
    step = step_of("trace-wakeup -p 1", next_step.WHO_ENDS)._replace(needs_module=True)
    assert tells(step) == "who ends these waits; needs a module of its own: --stap-compile-only"


def test_what_an_earlier_version_wrote_stays() -> None:
    assert tells(step_of("trace-wall -a", "who ends these waits")) == "who ends these waits"
