from __future__ import annotations

import pytest
from stallscope.converters.flame.tree import Key, Node, NodeKind, Tree
from stallscope.converters.model import Profile, ValueType
from stallscope.converters.writers.base.options import WriteOptions
from stallscope.converters.writers.colors import palette as palettes
from stallscope.converters.writers.svg.frames import Frames, Graph
from stallscope.converters.writers.svg.text import Labels, Unit

TIME = ValueType("wall", "nanoseconds")


def node(depth: int, name: str, start: int, total: int, kind: NodeKind = "native") -> Node:
    return Node(depth, Key(name, kind if depth else "root", ""), start, total, 0, 0)


def graph(tree: Tree, **options: int) -> Graph:
    profile = Profile([tree.value_type])
    palette = palettes.choose("calm", profile, "wall")
    return Graph(profile, tree, WriteOptions(**options), palette, Labels("", 12), Unit("nanoseconds"))  # type: ignore[arg-type]


def drawn(frames: Frames) -> list[str]:
    """Boxes as ``NAME TOP``, lines as they are."""
    found = []
    for part in frames.elements():
        if part.startswith("<rect"):
            top = part.partition(' y="')[2].partition('"')[0]
            found.append(f"{part.partition('<title>')[2].partition(chr(10))[0]} {top}")
        elif not part.startswith("<"):
            found.append(part.rstrip("\n"))
    return [part for part in found if part != "</g>"]


BANDS = Tree(
    TIME,
    "",
    [node(0, "one", 0, 100), node(1, "a", 0, 50), node(2, "b", 10, 5), node(0, "two", 0, 100), node(1, "c", 0, 9)],
    5,
    0,
    bands=[3, 2],
    timed=True,
)


@pytest.mark.parametrize(
    ("inverted", "tops"),
    [(False, [142, 124, 106, 188, 170]), (True, [106, 124, 142, 170, 188])],
)
def test_roots_lie_one_above_the_other(inverted: bool, tops: list[int]) -> None:
    made = graph(BANDS, inverted=inverted)
    assert drawn(Frames(made)) == [
        f"{name} {top}" for name, top in zip(["one", "a", "b", "two", "c"], tops, strict=True)
    ]
    assert made.top == 106
    assert made.height == 5 * 18 + 10


def test_what_is_too_narrow_is_a_line_with_the_number_of_its_name() -> None:
    nodes = [node(0, "all", 0, 10**6), node(1, "x<y", 0, 5), node(2, "z", 0, 2, "kernel"), node(1, "x<y", 7, 3)]
    frames = Frames(graph(Tree(TIME, "", nodes, 3, 0, bands=[3])))
    css = palettes.choose("calm", Profile([TIME]), "wall").css_class
    assert drawn(frames) == [
        "all 122",
        f"{css(nodes[1])} 1 0 5 0 0",
        f"{css(nodes[2])} 2 0 2 0 1",
        f"{css(nodes[3])} 1 7 3 0 0",
    ]
    assert frames.names() == '<metadata id="names">x&lt;y\tnative\nz\tkernel</metadata>\n'


@pytest.mark.parametrize(
    ("start", "total", "told"),
    [
        (2_600_000, 1_400_000, "1.40 ms · 15.6 % · at 2.60 ms"),
        (444_000, 5_556_000, "5.56 ms · 61.7 % · at 0.44 ms"),
        (3_000_000, 123, "123 ns · <0.1 % · at 3.000000 ms"),
        (7_654_321, 850_000, "850 µs · 9.4 % · at 7.654 ms"),
    ],
)
def test_when_a_call_was_has_as_many_digits_as_how_long(start: int, total: int, told: str) -> None:
    nodes = [node(0, "all", 0, 9_000_000), node(1, "a", start, total)]
    frames = Frames(graph(Tree(TIME, "", nodes, 2, 0, bands=[2], timed=True), width=20_000))
    assert f"<title>a\n{told}\n" in "".join(frames.elements()).replace("&lt;", "<")


def test_without_narrow_boxes_there_is_no_list_of_names() -> None:
    frames = Frames(graph(BANDS))
    list(frames.elements())
    assert frames.names() == ""


def test_names_cannot_end_their_line() -> None:
    nodes = [node(0, "all", 0, 10**6), node(1, "a\tb\nc</metadata>", 0, 5)]
    frames = Frames(graph(Tree(TIME, "", nodes, 2, 0, bands=[2])))
    list(frames.elements())
    assert frames.names() == '<metadata id="names">a\\x09b\\x0ac&lt;/metadata&gt;\tnative</metadata>\n'
