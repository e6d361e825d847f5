from __future__ import annotations

from typing import Any

import click
import pytest
from stallscope.converters import transform_options as pipeline
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Frame, Profile, Sample, ValueType
from stallscope.converters.phrases.remarks import worded

NS, COUNT = ValueType("off-cpu", "nanoseconds"), ValueType("count", "count")
NOTHING: dict[str, Any] = {
    **dict.fromkeys(("keep", "drop", "focus", "ignore", "begin_at", "end_at", "hide", "show", "simplify"), ()),
    "collapse": None,
    "callers": False,
    "max_depth": None,
    "merge": False,
}


def given(*arguments: str) -> dict[str, Any]:
    """Values that click makes of a command line."""

    @click.command()
    @pipeline.options
    def command(**values: Any) -> None:
        parsed.update(values)

    parsed: dict[str, Any] = {}
    command.main(list(arguments), standalone_mode=False)
    return parsed


def run(texts: dict[str, int], *arguments: str, value: str = "") -> tuple[dict[str, int], list[str]]:
    """Samples of folded text, and the comments."""
    samples = []
    for i, (text, weight) in enumerate(texts.items()):
        labels = (("pid", i), ("process", "rank"), ("state", "DS"[i % 2]), ("thread", f"worker-{i}"), ("tid", i))
        samples.append(Sample(tuple(map(Frame, text.split(";"))), (weight, 1), labels))
    profile = Profile([NS, COUNT], samples, comments=["mine"])
    changed = pipeline.apply(profile, pipeline.plan(given(*arguments)), value)
    assert worded(profile.comments) == ["mine"] and len(profile.samples) == len(texts)
    sums: dict[str, int] = {}
    for sample in changed.samples:
        text = ";".join(frame.name for frame in sample.stack)
        sums[text] = sums.get(text, 0) + sample.values[0]
    return sums, worded(changed.comments)[1:]


def test_nothing_asked_is_nothing_done() -> None:
    assert given() == NOTHING
    assert pipeline.plan(NOTHING) == []
    profile = Profile([NS])
    assert pipeline.apply(profile, []) is profile


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--keep", "state=D"], {"a;b": 1, "c;a": 100}),
        (["--keep", "thread=-0", "--keep", "thread=-1"], {"a;b": 1, "b;b;c": 10}),
        (["--keep", "thread=-[01]", "--keep", "state=S"], {"b;b;c": 10}),
        (["--keep", "frame=c"], {"b;b;c": 10, "c;a": 100}),
        (["--drop", "state=D", "--drop", "state=x"], {"b;b;c": 10}),
        (["--focus", "a", "--focus", "b"], {"a;b": 1}),
        (["--ignore", "a"], {"b;b;c": 10}),
        (["--begin-at", "b"], {"b": 1, "b;b;c": 10, "c;a": 100}),
        (["--end-at", "b|c"], {"a;b": 1, "b": 10, "c": 100}),
        (["--hide", "b"], {"a": 1, "c": 10, "c;a": 100}),
        (["--show", "b|c"], {"b": 1, "b;b;c": 10, "c": 100}),
        (["--collapse", "direct"], {"a;b": 1, "b;c": 10, "c;a": 100}),
        (["--callers"], {"b;a": 1, "c;b;b": 10, "a;c": 100}),
        (["--max-depth", "1"], {"a": 1, "b": 10, "c": 100}),
        (["--merge"], {"a;b": 1, "b;b;c": 10, "c;a": 100}),
    ],
)
def test_every_option_does_its_thing(arguments: list[str], expected: dict[str, int]) -> None:
    assert run({"a;b": 1, "b;b;c": 10, "c;a": 100}, *arguments)[0] == expected


def test_the_order_of_the_options_does_not_matter() -> None:
    texts = {"main;run<int>;run<float>;wait": 8, "main;idle": 2}
    arguments = [("--focus", "int"), ("--begin-at", "int"), ("--hide", "wait"), ("--simplify", "templates")]
    arguments += [("--collapse", "direct"), ("--max-depth", "2")]
    expected = ({"run<…>": 8}, ["kept 80.0 % of off-cpu: --focus int"])
    for order in (arguments, arguments[::-1]):
        assert run(texts, *[word for option in order for word in option]) == expected


def test_depth_is_counted_after_turning_over_and_hiding_after_trimming() -> None:
    assert run({"a;b;c": 1}, "--callers", "--max-depth", "2")[0] == {"c;b": 1}
    assert run({"a;b;c": 1}, "--hide", "b", "--begin-at", "b")[0] == {"c": 1}


def test_one_comment_says_what_all_filters_left() -> None:
    texts = {"a": 1, "b": 30, "c": 69}
    assert run(texts, "--drop", "frame=c", "--hide", "^b$", "--end-at", "a")[1] == [
        "kept 1.0 % of off-cpu: --drop frame=c --hide ^b$"
    ]
    assert run(texts, "--ignore", "c", value="count")[1] == ["kept 66.7 % of count: --ignore c"]
    assert run(texts, "--ignore", "c", value="time")[1] == ["kept 31.0 % of off-cpu: --ignore c"]
    assert run(texts, "--ignore", "nothing")[1] == []
    assert run(texts, "--keep", "frame=x")[1] == ["kept 0.0 % of off-cpu: --keep frame=x"]


def test_several_kinds_of_names() -> None:
    texts = {"f<int>+0x1": 1, "{lambda()#2}": 2}
    assert run(texts, "--simplify", "templates,addresses")[0] == {"f<…>+0x…": 1, "{lambda()#2}": 2}
    assert run(texts, "--simplify", "lambdas", "--simplify", "all")[0] == {"f<…>+0x…": 1, "{lambda()#N}": 2}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--focus", "("], "--focus: missing ), unterminated subpattern at position 0"),
        (["--begin-at", "a**"], "--begin-at: multiple repeat at position 2"),
        (["--drop", "state=["], "--drop state: unterminated character set at position 0"),
        (["--keep", "python3"], "--keep python3: expected KEY=REGEX"),
        (["--keep", "=x"], "--keep =x: expected KEY=REGEX"),
        (["--simplify", "template"], "--simplify template: no such names"),
        (["--simplify", ""], "--simplify : no such names"),
    ],
)
def test_what_makes_no_sense_is_said_before_anything_is_read(arguments: list[str], message: str) -> None:
    with pytest.raises(StallscopeError) as caught:
        pipeline.plan(given(*arguments))
    assert caught.value.cause.startswith(message)
    assert caught.value.remedy
    assert caught.value.exit_code == 2


def test_a_value_that_is_not_there() -> None:
    with pytest.raises(StallscopeError, match="nonsense"):
        run({"a": 1}, "--merge", value="nonsense")
