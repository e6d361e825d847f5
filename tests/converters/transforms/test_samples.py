from __future__ import annotations

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Frame, Module, Profile, Sample, ValueType
from stallscope.converters.model.scheduling import Scheduling
from stallscope.converters.model.timeline import Timeline
from stallscope.converters.transforms.samples import ByFrame, add_up, compiled, matching, with_samples, with_stacks

KINDS = [ValueType("off-cpu", "nanoseconds"), ValueType("min", "ns", "min"), ValueType("max", "ns", "max")]
A, B = Frame("a"), Frame("b")


def test_equal_samples_are_joined_as_their_columns_say_in_the_order_of_first_sight() -> None:
    who = (("pid", 1),)
    samples = [
        Sample((A, B), (5, 5, 5), who),
        Sample((A,), (1, 1, 1), who),
        Sample((Frame("a"), Frame("b")), (7, 7, 7), (("pid", 1),)),
        Sample((A, B), (9, 2, 3), who),
        Sample((A, B), (11, 1, 1), ()),
    ]
    assert add_up(samples, KINDS) == [
        Sample((A, B), (21, 2, 7), who),
        Sample((A,), (1, 1, 1), who),
        Sample((A, B), (11, 1, 1), ()),
    ]


def test_a_minimum_of_nothing_is_no_minimum() -> None:
    """On-CPU samples have none of the intervals that waits have."""
    wait, running = (7, 5, 9), (4, 0, 0)
    for one, other in ((wait, running), (running, wait)):
        assert add_up([Sample((A,), one), Sample((A,), other)], KINDS) == [Sample((A,), (11, 5, 9))]
    assert add_up([Sample((A,), running), Sample((A,), running)], KINDS) == [Sample((A,), (8, 0, 0))]


def test_what_differs_in_any_part_of_a_frame_stays_apart() -> None:
    frames = [A, Frame("a", "kernel"), Frame("a", address=1), Frame("a", line=1), Frame("a", module=Module("m"))]
    samples = [Sample((frame,), (1, 1, 1)) for frame in frames]
    assert add_up(samples, KINDS) == samples


def test_the_timeline_goes_and_the_rest_stays() -> None:
    profile = Profile(KINDS, [Sample((A,), (1, 1, 1))], "t", "h", 3, 4, [], {"x": 1}, ["c"], Timeline())
    profile.scheduling = Scheduling(5)
    changed = with_samples(profile, [])
    assert changed == Profile(KINDS, [], "t", "h", 3, 4, [], {"x": 1}, ["c"], None)
    assert profile.timeline is not None and len(profile.samples) == 1


def test_a_stack_that_loses_all_its_frames_goes_and_one_without_any_stays() -> None:
    profile = Profile(KINDS, [Sample((A,), (1, 1, 1)), Sample((), (2, 2, 2)), Sample((B, A), (3, 3, 3))])
    changed = with_stacks(profile, lambda stack: stack[:-1])
    assert changed.samples == [Sample((), (2, 2, 2)), Sample((B,), (3, 3, 3))]


def test_a_frame_is_asked_once_however_many_objects_it_is() -> None:
    asked: list[str] = []

    def of(frame: Frame) -> int:
        asked.append(frame.name)
        return len(frame.name)

    known = ByFrame(of)
    assert [known[Frame("abc")], known[Frame("abc")], known[A]] == [3, 3, 1]
    assert asked == ["abc", "a"]


@pytest.mark.parametrize(
    ("frame", "found"),
    [
        (Frame("cuda_topk"), True),
        (Frame("x", file="/src/topk.py"), True),
        (Frame("x", module=Module("/lib/libtopk.so")), True),
        (Frame("x", module=Module("/lib/libc.so", build_id="topk")), False),
        (Frame("TOPK"), False),
    ],
)
def test_a_pattern_is_looked_for_where_pprof_looks(frame: Frame, found: bool) -> None:
    assert matching(compiled("--focus", "topk"))[frame] is found


def test_an_empty_file_or_module_does_not_match_what_matches_the_empty_text() -> None:
    assert matching(compiled("--focus", "^$"))[Frame("x")] is False


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a[", "--focus: unterminated character set at position 1 of 'a['"),
        ("(", "--focus: missing ), unterminated subpattern at position 0 of '('"),
        ("*", "--focus: nothing to repeat at position 0 of '*'"),
        ("a{99999999999999999999}", "--focus: the regular expression is too large"),
    ],
)
def test_a_bad_expression_names_its_option_and_its_place(text: str, message: str) -> None:
    with pytest.raises(StallscopeError) as caught:
        compiled("--focus", text)
    assert caught.value.cause.startswith(message)
    assert caught.value.exit_code == 2
    assert caught.value.remedy


def test_what_python_warns_of_is_no_noise(recwarn: pytest.WarningsRecorder) -> None:
    assert compiled("--focus", "[[a]").search("[")
    assert not recwarn.list
