from __future__ import annotations

import base64
import hashlib
import random
import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.flame.tree import build
from stallscope.converters.model import Frame, Module, Profile, Sample, ValueType
from stallscope.converters.writers.base.options import WriteOptions
from stallscope.converters.writers.colors.palette import PALETTES
from svg_texts import COMPARED, LABELS, SVG, lines, names, profile, rects, sample, text_of

XHTML = "{http://www.w3.org/1999/xhtml}"
HOSTILE = [
    "<script>alert(1)</script>;x",
    '"]]><b>&amp;"',
    "' onload='alert(1)",
    "</title></rect><image href='http://x/'/>",
    "line\nfeed\0\x1b[31m\ud800\ufffe",
    "evil\u202egnp.exe",
    "std::map<std::string, std::vector<int>>::operator[](std::string const&)",
]


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
    assert titles[3] == "topk\n600 µs · 60.0 % · 0 ns in itself · 3 times\nnative · /lib/libc.so.6"


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
    root = ET.fromstring(text_of(profile(sample(5, "a", "b")), inverted=True))
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
        [ValueType(name, name), ValueType(name, "count")],
        [Sample((Frame(name, "native", Module(name)),), (5, 1), (("pid", 7), ("process", name)))],
        title=name,
        host=name,
        lost={name: 1},
        comments=[name],
    )
    plain, root = ET.fromstring(text_of(harmless, palette="calm")), ET.fromstring(text_of(hostile, palette="calm"))
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
    attributes = {key for element in root.iter() for key in element.attrib}
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


def test_what_cannot_be_seen_is_text_beside_its_neighbours() -> None:
    data = profile(sample(10**9, "wide"), *(sample(1, "<i>", f"narrow{i}") for i in range(3)), sample(10**9, "zoom"))
    root = ET.fromstring(text_of(data, min_width=0))
    assert names(root) == ["all", "job-7", "wide", "zoom"]
    assert "not drawn" not in "".join(lines(root))
    gaps = [(rect.tail or "").strip() for rect in rects(root)]
    table = (root.findtext(f"{SVG}metadata[@id='names']") or "").split("\n")
    origin = "native · /lib/libc.so.6"
    assert table == [f"<i>\t{origin}", *(f"narrow{i}\t{origin}" for i in range(3))]
    assert [bool(gap) for gap in gaps] == [False, True, False, False]
    found = [line.split() for line in gaps[1].split("\n")]
    # <i> comes before "wide" by its name.
    assert [line[1:] for line in found] == [
        ["2", "0", "3", "0", "3", "0"], *(["3", str(i), "1", "1", "1", str(i + 1)] for i in range(3))
    ]  # fmt: skip
    rules = set(re.findall(r"\.([\w-]+)\{fill", root.findtext(f"{SVG}style") or ""))
    assert {line[0] for line in found} <= rules
    assert "names" not in text_of(profile(sample(5, "a"))).partition("<script>")[0]


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
    root = ET.fromstring(text_of(data, notes=("a note",)))
    assert lines(root, "heading") == ["Off-CPU time"]
    assert lines(root)[0] == "node-17 · 2025-10-09 08:53:20 UTC · 10.0 s long · 5.00 ms off-cpu · 4 times"
    assert lines(root)[1:] == [
        "lost: not recorded",
        "a note",
        *(f"comment {i}" for i in range(7)),
        "5 more notes are in the profile",
    ]
    named = ET.fromstring(text_of(data, title="Mine", subtitle="below"))
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
    root = ET.fromstring(text_of(data, value="count"))
    assert [rect.get("data-v") for rect in rects(root)][2:] == ["2 0 3 3", "2 3 1 1"]
    assert (root.get("data-unit"), root.get("data-ns")) == ("count", "0")
    with pytest.raises(StallscopeError):
        text_of(data, value="longest")


def test_the_policy_names_the_one_script_of_the_file() -> None:
    root = ET.fromstring(text_of(profile(sample(5, "a"))))
    policy = root.find(f"{SVG}metadata/{XHTML}head/{XHTML}meta")
    assert policy is not None
    assert policy.get("http-equiv") == "Content-Security-Policy"
    script = root.findtext(f"{SVG}script") or ""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy.get("content") == (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; base-uri 'none'"
    )
    order = [element.tag for element in root]
    assert order.index(f"{SVG}metadata") < order.index(f"{SVG}style") < order.index(f"{SVG}script")
    # An HTML parser that meets a start tag <head> or <meta> inside an SVG leaves the SVG.
    assert not re.search(r"<(head|meta)\b", text_of(profile(sample(5, "a"))))
    assert "script-src 'none'" in text_of(profile())


@pytest.mark.parametrize("name", PALETTES)
def test_every_class_of_a_box_has_its_rule(name: str) -> None:
    data = COMPARED if name == "diff" else profile(*(sample(5, "main", f"f{i}") for i in range(40)))
    root = ET.fromstring(text_of(data, palette=name))
    rules = set(re.findall(r"\.([\w-]+)\{fill", root.findtext(f"{SVG}style") or ""))
    assert {rect.get("class") for rect in rects(root)} <= rules


def test_a_comparison_is_told_without_the_script() -> None:
    root = ET.fromstring(text_of(COMPARED))
    titles = {name: rect.findtext(f"{SVG}title") for name, rect in zip(names(root), rects(root), strict=True)}
    assert titles["main"] == "main\n2.10 µs · 100.0 % · before 2.10 µs: no change\nnative"
    assert titles["grown"] == "grown\n1.50 µs · 71.4 % · before 1.00 µs: +500 ns (+50.0 %)\nnative"
    assert titles["new"] == "new\n500 ns · 23.8 % · before 0 ns: +500 ns (new)\nnative"
    assert [rect.get("data-v") for rect in rects(root)] == [
        "0 0 2100 0 0 0", "1 0 2100 100 0 -300", "2 0 1500 1500 500 500", "2 1500 500 500 500 500",
    ]  # fmt: skip
    assert [rect.get("class") for rect in rects(root)] == ["x4", "x4", "x7", "x8"]
    assert root.get("data-drawn") == "after"
    assert lines(root)[0] == "2.10 µs after · before 2.10 µs: no change"
    assert "branches narrower than 0.1 px, or with nothing after, not drawn: 1" in lines(root)
    assert any(line.startswith("gone: ") for line in lines(root))
    older = ET.fromstring(text_of(COMPARED, value="before"))
    assert names(older) == ["all", "main", "gone", "grown"]
    assert (rects(older)[2].findtext(f"{SVG}title") or "").split("\n")[
        1
    ] == "700 ns · 33.3 % · after 0 ns: -700 ns (gone)"


def test_a_legend_has_no_more_than_the_width_has_room_for() -> None:
    modules = [Module(f"/opt/a_library_with_a_long_name_{i}.so") for i in range(40)]
    stacks = [Sample((Frame("main"), Frame("f", "native", module)), (5 + i, 1, 0)) for i, module in enumerate(modules)]
    root = ET.fromstring(text_of(profile(*stacks), palette="module"))
    legend = [element.text or "" for element in root.findall(f".//{SVG}g[@id='legend']/{SVG}text")]
    assert 2 <= len(legend) <= 6
    assert legend[0] == "a_library_with_a_long_name_3.."
    assert (
        len(ET.fromstring(text_of(profile(*stacks), palette="module", width=300)).findall(f".//{SVG}g[@id='legend']/*"))
        == 2
    )


def test_a_name_has_one_colour_in_two_graphs() -> None:
    def classes(*samples: Sample) -> dict[str, str | None]:
        root = ET.fromstring(text_of(profile(*samples)))
        return {name: rect.get("class") for name, rect in zip(names(root), rects(root), strict=True)}

    one, two = classes(sample(5, "main", "f", "g")), classes(sample(900, "h", "f", "i"), sample(4, "g"))
    assert {name: one[name] for name in ("f", "g")} == {name: two[name] for name in ("f", "g")}
