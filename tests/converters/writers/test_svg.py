from __future__ import annotations

import io
import random
import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stallscope.converters.errors import StallscopeError
from stallscope.converters.flame import build
from stallscope.converters.model import Frame, Labels, Module, Profile, Sample, ValueType
from stallscope.converters.options import WriteOptions
from stallscope.converters.writers import svg
from stallscope.converters.writers.svg import SvgOptions

SVG = "{http://www.w3.org/2000/svg}"
TYPES = [ValueType("off-cpu", "nanoseconds"), ValueType("count", "count"), ValueType("longest", "nanoseconds", "max")]
LABELS: Labels = (("pid", 7), ("process", "job"), ("thread", "worker"), ("tid", 8))
HOSTILE = [
    "<script>alert(1)</script>;x",
    '"]]><b>&amp;"',
    "' onload='alert(1)",
    "</title></rect><image href='http://x/'/>",
    "line\nfeed\0\x1b[31m\ud800\ufffe",
    "evil\u202egnp.exe",
    "std::map<std::string, std::vector<int>>::operator[](std::string const&)",
]


def sample(value: int, *names: str, count: int = 1) -> Sample:
    return Sample(tuple(Frame(name, "native", Module("/lib/libc.so.6")) for name in names), (value, count, 0), LABELS)


def profile(*samples: Sample, **fields: object) -> Profile:
    return Profile(TYPES, list(samples), **fields)  # type: ignore[arg-type]


def text_of(data: Profile, options: WriteOptions | None = None, svg_options: SvgOptions | None = None) -> str:
    file = io.BytesIO()
    svg.write(data, file, options or WriteOptions(), svg_options)
    return file.getvalue().decode("utf-8")


def rects(root: ET.Element) -> list[ET.Element]:
    return root.findall(f".//{SVG}g[@id='frames']/{SVG}rect")


def names(root: ET.Element) -> list[str]:
    return [(rect.findtext(f"{SVG}title") or "").split("\n")[0] for rect in rects(root)]


def lines(root: ET.Element, css: str = "line") -> list[str]:
    return [element.text or "" for element in root.findall(f".//{SVG}g[@id='page']/{SVG}text[@class='{css}']")]


def test_frames_are_the_tree_drawn_to_scale() -> None:
    data = profile(sample(600_000, "main", "topk", "ioctl", count=3), sample(400_000, "main", "wait", count=2))
    root = ET.fromstring(text_of(data))
    tree = build(data, WriteOptions())
    assert names(root) == [node.key.name for node in tree.nodes]
    scale = (1200 - 2 * 12) / 1_000_000
    bottom = max(float(rect.get("y", "")) for rect in rects(root))
    for rect, node in zip(rects(root), tree.nodes, strict=True):
        assert rect.get("data-v") == f"{node.depth} {node.start} {node.total} {node.own} {node.events}"
        assert float(rect.get("x", "")) == pytest.approx(12 + node.start * scale, abs=0.01)
        assert float(rect.get("width", "")) == pytest.approx(node.total * scale - 1, abs=0.01)
        assert float(rect.get("y", "")) == bottom - 18 * node.depth
    titles = [rect.findtext(f"{SVG}title") for rect in rects(root)]
    assert titles[0] == "all\n1.00 ms · 100.0 % · 5 times\n"
    assert titles[3] == "topk\n600 µs · 60.0 % · 3 times\nnative · /lib/libc.so.6"


def test_boxes_of_a_row_lie_side_by_side() -> None:
    rng = random.Random(1)
    data = profile(*(sample(rng.randint(1, 10**6), *rng.choices("abcdef", k=5)) for _ in range(500)))
    rows: dict[str, list[tuple[float, float]]] = {}
    for rect in rects(ET.fromstring(text_of(data))):
        rows.setdefault(rect.get("y", ""), []).append((float(rect.get("x", "")), float(rect.get("width", ""))))
    assert len(rows) == 7
    for row in rows.values():
        for (x, width), (after, _) in zip(row, row[1:], strict=False):
            assert x + width <= after + 0.02
        assert row[-1][0] + row[-1][1] <= 1188.01


def test_inverted_has_its_roots_on_top() -> None:
    root = ET.fromstring(text_of(profile(sample(5, "a", "b")), svg_options=SvgOptions(inverted=True)))
    tops = [float(rect.get("y", "")) for rect in rects(root)]
    assert tops == sorted(tops)
    assert root.get("data-inverted") == "1"


def test_labels_are_cut_to_their_boxes() -> None:
    data = profile(sample(940, "a_name_that_is_long_enough"), sample(60, "another_name_of_some_length"))
    labels = [label.text for label in ET.fromstring(text_of(data)).findall(f".//{SVG}g[@id='labels']/{SVG}text")]
    assert labels == ["all", "job-7", "a_name_that_is_long_enough", "anothe.."]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_text(name: str) -> None:
    harmless = profile(sample(5, "main"), title="t", host="h", lost={"l": 1}, comments=["c"])
    hostile = Profile(
        [ValueType(name, name)],
        [Sample((Frame(name, "native", Module(name)),), (5,), (("pid", 7), ("process", name)))],
        title=name,
        host=name,
        lost={name: 1},
        comments=[name],
    )
    plain, root = ET.fromstring(text_of(harmless)), ET.fromstring(text_of(hostile))
    assert [element.tag for element in root.iter()] == [element.tag for element in plain.iter()]
    assert root.findtext(f"{SVG}script") == plain.findtext(f"{SVG}script")
    assert root.findtext(f"{SVG}style") == plain.findtext(f"{SVG}style")
    assert [set(element.keys()) for element in root.iter()] == [set(element.keys()) for element in plain.iter()]
    if name.isascii() and name.isprintable():
        assert names(root) == ["all", f"{name}-7", name]
        assert root.findtext(f"{SVG}title") == name


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=()), min_size=1), min_size=1, max_size=4))
def test_any_name_gives_well_formed_xml(stack: list[str]) -> None:
    root = ET.fromstring(text_of(profile(sample(5, *stack), title=stack[0])))
    assert len(rects(root)) == len(stack) + 2


def test_nothing_is_loaded_and_nothing_runs_but_the_script() -> None:
    text = text_of(profile(*(sample(5, name) for name in HOSTILE)))
    root = ET.fromstring(text)
    attributes = {key for element in root.iter() for key in element.keys()}  # noqa: SIM118
    assert not {key for key in attributes if key.startswith("on") or "href" in key or key in ("style", "src")}
    assert len(list(root.iter(f"{SVG}script"))) == 1
    code = text[text.index("<script>") :] + text[text.index("<style>") : text.index("</style>")]
    assert set(re.findall(r"\w+://[^\"')\s]+", code)) == {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xhtml",
    }
    assert not re.search(r"@import|url\(|innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|fetch\(", code)
    assert code.count("]]>") == 1


def test_equal_profiles_give_equal_bytes() -> None:
    rng = random.Random(3)
    samples = [sample(rng.randint(1, 10**9), *rng.choices("abcdef", k=8), count=i) for i in range(300)]
    shuffled = rng.sample(samples, len(samples))
    assert text_of(profile(*samples)) == text_of(profile(*shuffled))


def test_a_deep_stack() -> None:
    root = ET.fromstring(text_of(profile(sample(5, *(f"f{i}" for i in range(5_000))))))
    assert len(rects(root)) == 5_002
    assert float(root.get("height", "")) > 5_002 * 18
    assert all(0 < float(rect.get("y", "")) < float(root.get("height", "")) for rect in rects(root))


def test_narrow_branches_are_left_out_and_said_to_be() -> None:
    data = profile(sample(10**9, "wide"), *(sample(1, f"narrow{i}") for i in range(5)))
    root = ET.fromstring(text_of(data))
    assert names(root) == ["all", "job-7", "wide"]
    assert "branches narrower than 0.1 px, not drawn: 5" in lines(root)
    assert len(rects(ET.fromstring(text_of(data, svg_options=SvgOptions(min_width=0))))) == 8


@pytest.mark.parametrize(
    ("samples", "text"),
    [
        ((), "Nothing to show: the profile has no samples."),
        ((sample(0, "a"), sample(0, "b")), "Nothing to show: 2 samples, none with a value above 0."),
    ],
)
def test_an_empty_profile_says_so(samples: tuple[Sample, ...], text: str) -> None:
    root = ET.fromstring(text_of(profile(*samples, title="Idle", lost={"lost events": 0})))
    assert lines(root, "nothing") == [text]
    assert lines(root, "heading") == ["Idle"]
    assert "lost: 0" in lines(root)
    assert not rects(root)


def test_what_is_missing_is_said() -> None:
    data = profile(sample(5, "a"), lost={"lost events": 1200, "full maps": 0, "stacks cut short": 3})
    assert lines(ET.fromstring(text_of(data)), "warning") == ["lost: 1,200 lost events, 3 stacks cut short"]
    assert "lost: 0" in lines(ET.fromstring(text_of(profile(sample(5, "a"), lost={"lost events": 0}))))
    assert "lost: not recorded" in lines(ET.fromstring(text_of(profile(sample(5, "a")))))


def test_heading_subtitle_and_notes() -> None:
    data = profile(
        sample(5_000_000, "a", count=4),
        title="Off-CPU time",
        host="node-17",
        start_ns=1_760_000_000 * 10**9,
        duration_ns=10 * 10**9,
        comments=[f"comment {i}" for i in range(12)],
    )
    root = ET.fromstring(text_of(data, svg_options=SvgOptions(notes=["a note"])))
    assert lines(root, "heading") == ["Off-CPU time"]
    assert lines(root)[0] == "node-17 · 2025-10-09 08:53:20 UTC · 10.0 s long · 5.00 ms off-cpu · 4 times"
    assert lines(root)[1:] == [
        "lost: not recorded",
        "a note",
        *(f"comment {i}" for i in range(7)),
        "5 more notes are in the profile",
    ]
    named = ET.fromstring(text_of(data, WriteOptions(title="Mine"), SvgOptions(subtitle="below")))
    assert lines(named, "heading") == ["Mine"]
    assert named.findtext(f"{SVG}title") == "Mine"
    assert lines(named)[0] == "below"


def test_the_legend_lists_the_kinds_that_are_there() -> None:
    stack = (Frame("a", "python"), Frame("b", "kernel"))
    root = ET.fromstring(text_of(profile(Sample(stack, (5, 1, 0), LABELS))))
    legend = root.find(f".//{SVG}g[@id='legend']")
    assert legend is not None
    assert [element.text for element in legend.iter(f"{SVG}text")] == ["kernel", "Python"]


def test_the_value_is_chosen_by_name() -> None:
    data = profile(sample(10, "a", count=3), sample(10, "b", count=1))
    root = ET.fromstring(text_of(data, WriteOptions(value="count")))
    assert [rect.get("data-v") for rect in rects(root)][2:] == ["2 0 3 3", "2 3 1 1"]
    assert (root.get("data-unit"), root.get("data-ns")) == ("count", "0")
    with pytest.raises(StallscopeError):
        text_of(data, WriteOptions(value="longest"))
