from __future__ import annotations

import re

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.engines.bcc.source import Choice, MapNumber, source
from stallscope.tracers.engines.protocol import EngineUnavailable
from stallscope.tracers.kernel.tracepoint_format import Format


def defined(text: str) -> dict[str, str]:
    return dict(re.findall(r"^#define (\w+) (\S+)$", text, re.MULTILINE))


def test_numbers_in_front(formats: dict[str, Format]) -> None:
    choice = Choice(waits=True, user_stacks=False, children=False, shortest=1000)
    found = defined(source(choice, formats, 4711))
    assert (found["PREV_PID"], found["NEXT_PID"], found["PREV_STATE"]) == ("24", "56", "32")
    assert (found["STATE_BITS"], found["ENDED_BITS"]) == ("255", "48")
    assert (found["SELF"], found["USER_STACKS"], found["CHILDREN"]) == ("4711", "0", "0")
    assert (found["SHORTEST"], found["LONGEST"]) == ("1000ULL", "18446744073709551615ULL")
    assert {found[f"MAP_{each.name}"] for each in MapNumber} == {str(each.value) for each in MapNumber}


def test_all_that_the_programs_use_is_defined(formats: dict[str, Format]) -> None:
    text = source(Choice(), formats, 1)
    used = set(re.findall(r"\b(?:MAP|NEW|LOST)_[A-Z_]+[01]?\b", text))
    paired = {f"{name}_0" if f"{name}_0" in defined(text) else name for name in used}
    assert {name for name in paired if name not in defined(text)} == set()


@pytest.mark.parametrize("lacks", ["S", "D"])
def test_a_kernel_that_does_not_tell_waits(lacks: str, formats: dict[str, Format]) -> None:
    switch = formats["sched:sched_switch"]
    formats[switch.name] = switch._replace(text=switch.text.replace(f'"{lacks}"', f'"{lacks} "'))
    with pytest.raises(EngineUnavailable, match="does not say which states are waits") as raised:
        source(Choice(), formats, 1)
    assert raised.value.remedy


def test_a_kernel_with_other_fields(formats: dict[str, Format]) -> None:
    formats["task:task_newtask"] = Format("task:task_newtask", 3, {"pid": (8, 4)}, "")
    with pytest.raises(StallscopeError, match="task:task_newtask has no clone_flags"):
        source(Choice(), formats, 1)
