from __future__ import annotations

import re

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.flame.tree import Key, Node, Tree, build
from stallscope.converters.model import Frame, Labels, Module, Profile, Sample, ValueType
from stallscope.converters.model.wakers import SEPARATOR, WAKER
from stallscope.converters.writers.base.options import WriteOptions
from stallscope.converters.writers.colors import palette as palettes
from stallscope.converters.writers.colors.palette import PALETTES, Palette

LIGHT_TEXT, DARK_TEXT = "#16191d", "#f4f6f8"
"""The labels' colours in svg.css."""
OFF_CPU = Profile([ValueType("off-cpu", "nanoseconds")])
DIFFERENTIAL = Profile([ValueType("after", "count"), ValueType("before", "count")])


def luminance(color: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def rules(css: str) -> dict[str, str]:
    return dict(re.findall(r"\.([\w-]+)\{fill:(#[0-9a-f]{6})\}", css))


def halves(palette: Palette) -> tuple[dict[str, str], dict[str, str]]:
    light, dark = palette.css().split("@media screen and (prefers-color-scheme:dark)")
    return rules(light), rules(dark)


def chosen(name: str, profile: Profile | None = None, drawn: str = "after") -> Palette:
    return palettes.choose(name, profile or (DIFFERENTIAL if name == "diff" else OFF_CPU), drawn)


def node(name: str, kind: str = "native", module: str = "", depth: int = 1, **numbers: int) -> Node:
    return Node(depth, Key(name, kind, module), 0, numbers.get("total", 10), numbers.get("own", 10), 0)  # type: ignore[arg-type]


def tree(*nodes: Node) -> Tree:
    return Tree(OFF_CPU.value_types[0], "", list(nodes), 2, 0)


@pytest.mark.parametrize("name", PALETTES)
def test_labels_can_be_read_on_every_colour_in_both_modes(name: str) -> None:
    light, dark = halves(chosen(name))
    assert light
    assert light.keys() == dark.keys()
    assert min(contrast(LIGHT_TEXT, color) for color in light.values()) >= 6
    assert min(contrast(DARK_TEXT, color) for color in dark.values()) >= 4.5


@pytest.mark.parametrize("name", PALETTES)
def test_every_class_has_a_rule_and_a_name_keeps_its_colour(name: str) -> None:
    classes = halves(chosen(name))[0]
    frames = [
        node(text, kind, module)._replace(label=state, delta=delta)
        for text in ("f", "-", "std::move<\ud800>", "wake_[w]")
        for kind in ("kernel", "native", "python", "jit", "api", "other", "root", "of tomorrow")
        for module in ("", "/lib/libc.so.6", "/opt/ü.so")
        for state in ("", "interruptible", "idle", "<script>")
        for delta in (-10, 0, 10)
    ]
    first, second = chosen(name), chosen(name)
    for frame in frames:
        assert first.css_class(frame) == second.css_class(frame)
        assert first.css_class(frame) in classes
    for css_class, text in first.legend(tree(*frames)):
        assert css_class in classes
        assert text


@pytest.mark.parametrize(
    ("types", "palette"),
    [
        ([ValueType("off-cpu", "nanoseconds"), ValueType("count", "count")], "calm"),
        ([ValueType("block_time", "nanoseconds")], "calm"),
        ([ValueType("cpu", "nanoseconds")], "warm"),
        ([ValueType("samples", "count")], "warm"),
        ([ValueType("inuse_space", "bytes")], "mem"),
        (DIFFERENTIAL.value_types, "diff"),
    ],
)
def test_the_palette_suits_what_is_measured(types: list[ValueType], palette: str) -> None:
    assert chosen("", Profile(types), types[0].name).css() == chosen(palette).css()


def test_a_palette_that_cannot_be_had() -> None:
    with pytest.raises(StallscopeError) as error:
        chosen("hotter")
    assert error.value.exit_code == 2
    assert "hot, mem, io" in error.value.remedy
    with pytest.raises(StallscopeError, match="no comparison"):
        chosen("diff", OFF_CPU)


def test_a_comparison_may_be_coloured_by_kind() -> None:
    assert chosen("hot", DIFFERENTIAL).css() == chosen("hot").css()


def test_kinds_and_wakers() -> None:
    chain, calm = chosen("chain"), chosen("calm")
    assert chain.css_class(node("ttwu_[w]", "kernel"))[0] == "w"
    assert calm.css_class(node("ttwu_[w]", "kernel"))[0] == "k"
    graph = tree(node("all", "root"), node("a", "python"), node("b", "kernel"), node("ttwu_[w]"))
    assert [text for _, text in chain.legend(graph)] == ["kernel", "Python", "waker"]
    assert [text for _, text in calm.legend(graph)] == ["kernel", "native", "Python"]


def test_stacks_with_wakers_have_the_palette_of_chains() -> None:
    waits = Sample((Frame("f"), SEPARATOR, Frame("g", WAKER)), (5, 0), ())
    beside = Sample((Frame("f"),), (0, 5), ())
    types = [ValueType("blocked", "nanoseconds"), ValueType("off-cpu", "nanoseconds")]
    profile = Profile(types, [waits, beside])
    drawn = palettes.choose("", profile, "blocked")
    assert drawn.css() == palettes.choose("chain", profile, "blocked").css()
    assert palettes.choose("", profile, "off-cpu").css() == palettes.choose("calm", profile, "off-cpu").css()
    assert drawn.css_class(node("g", "waker"))[0] == "w"


def test_the_state_that_most_of_the_time_was_spent_in() -> None:
    def sample(value: int, state: str, *names: str) -> Sample:
        labels: Labels = (("state", state),) if state else ()
        return Sample(tuple(Frame(name) for name in names), (value,), labels)

    profile = Profile(
        OFF_CPU.value_types,
        [
            sample(5, "interruptible", "main", "wait"),
            sample(6, "uninterruptible", "main", "read"),
            sample(1, "a new one", "main", "new"),
            sample(2, "", "main", "none"),
        ],
    )
    palette = chosen("state", profile)
    graph = build(profile, WriteOptions(), label=palette.label)
    states = {node.key.name: node.label for node in graph.nodes}
    assert states == {
        "all": "uninterruptible", "main": "uninterruptible", "wait": "interruptible", "read": "uninterruptible",
        "new": "a new one", "none": "",
    }  # fmt: skip
    assert [text for _, text in palette.legend(graph)] == [
        "interruptible", "uninterruptible", "other", "state not known",
    ]  # fmt: skip
    classes = {node.key.name: palette.css_class(node)[0] for node in graph.nodes}
    assert classes["main"] == classes["read"] != classes["wait"]
    assert len({classes[name] for name in ("wait", "read", "new", "none")}) == 4


def test_modules_keep_their_hue_over_versions_and_paths() -> None:
    palette = chosen("module")
    hue = {module: palette.css_class(node("f", "native", module))[:-1] for module in (
        "/usr/lib/libc.so.6", "/nix/libc.so.7.2", "/usr/lib/libcuda.so.1", ""
    )}  # fmt: skip
    assert hue["/usr/lib/libc.so.6"] == hue["/nix/libc.so.7.2"]
    assert len(set(hue.values())) == 3
    graph = tree(
        node("all", "root", own=99), node("f", module="/lib/a.so.1", own=3), node("g", module="/lib/b.so", own=5),
        node("h", module="/opt/a.so.2", own=4), node("k", "kernel", own=1),
    )  # fmt: skip
    assert [text for _, text in palette.legend(graph)] == ["a.so", "b.so", "kernel"]


@pytest.mark.parametrize(
    ("after", "before", "step"),
    [
        (100, 100, 4), (101, 100, 4), (99, 100, 4), (102, 100, 5), (98, 100, 3), (110, 100, 6), (90, 100, 2),
        (133, 100, 7), (75, 100, 1), (200, 100, 8), (50, 100, 0), (7, 0, 8), (0, 7, 0),
    ],
)  # fmt: skip
@pytest.mark.parametrize("drawn", ["after", "before"])
def test_more_is_red_and_less_is_blue(after: int, before: int, step: int, drawn: str) -> None:
    palette = chosen("diff", drawn=drawn)
    changed = node("f", total=before if drawn == "before" else after)._replace(delta=after - before)
    assert palettes.sides(changed, drawn) == (after, before)
    assert palette.css_class(changed) == f"x{step}"
    color = halves(palette)[0][f"x{step}"]
    red, blue = int(color[1:3], 16), int(color[5:], 16)
    assert (red > blue) == (step > 4) or step == 4
    assert (red < blue) == (step < 4) or step == 4


def test_the_legend_of_a_comparison_goes_from_less_to_more() -> None:
    palette = chosen("diff")
    legend = palette.legend(tree(node("f")))
    assert [css_class for css_class, _ in legend] == [f"x{i}" for i in range(9)]
    assert [text for _, text in legend][::4] == ["-50 % or less", "as before", "+100 % or more"]
    assert palette.legend(tree()) == []


def test_modules_of_a_profile_are_told_in_the_tree() -> None:
    profile = Profile(OFF_CPU.value_types, [Sample((Frame("f", "native", Module("/lib/libm.so.6")),), (5,))])
    palette = chosen("module", profile)
    assert [text for _, text in palette.legend(build(profile, WriteOptions()))] == ["libm.so"]


def states(*names: str) -> Profile:
    samples = [Sample((Frame("work"),), (5,), (("pid", 1), ("state", name))) for name in names]
    return Profile([ValueType("wall", "nanoseconds")], samples)


def test_threads_that_run_and_wait_are_coloured_by_state() -> None:
    both = states("running", "uninterruptible", "running")
    palette = palettes.choose("", both, "wall")
    assert palette.label == "state"
    legend = palette.legend(build(both, WriteOptions(), label=palette.label))
    assert [label for _, label in legend] == ["running"]
    assert palettes.choose("", both, "wall", roots=("process",)).label == "state"


def test_states_under_the_stacks_need_no_colours_and_one_kind_of_time_has_none() -> None:
    both = states("running", "uninterruptible")
    assert palettes.choose("", both, "wall", roots=("process", "state")).label == ""
    assert palettes.choose("hot", both, "wall").label == ""
    assert palettes.choose("", states("running"), "wall").label == ""
    assert palettes.choose("", states("interruptible", "runnable-woken"), "wall").label == ""
    assert palettes.choose("", OFF_CPU, "off-cpu").label == ""
