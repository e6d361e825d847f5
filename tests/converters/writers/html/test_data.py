from __future__ import annotations

import json
import struct
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.base.text import printable
from stallscope.converters.flame.tree import build
from stallscope.converters.model import Frame, Labels, Module, Profile, Sample, ValueType
from stallscope.converters.writers.base.options import WriteOptions
from stallscope.converters.writers.colors import palette as palettes
from stallscope.converters.writers.html.data import pack

OFF_CPU, COUNT = ValueType("off-cpu", "nanoseconds"), ValueType("count", "count")
LIB = Module("/opt/lib.so")
WHO: Labels = (("pid", 7), ("process", "p"), ("thread", "t"), ("tid", 8))
HOSTILE = "</script>\x1b\udcff\u202e"


class Block:
    """Data that the page's script reads."""

    def __init__(self, profile: Profile, **options: Any) -> None:
        given = WriteOptions(**options)
        palette = palettes.choose(given.palette, profile, "")
        raw = zlib.decompress(pack(profile, given, palette))
        (length,) = struct.unpack_from("<I", raw)
        assert (4 + length) % 8 == 0  # the script lays Float64Arrays over what follows
        self.about = json.loads(raw[4 : 4 + length])
        stacks, nodes = self.about["stacks"], self.about["nodes"]
        at = 4 + length
        self.values = []
        for _ in self.about["values"]:
            self.values.append(list(struct.unpack_from(f"<{stacks}d", raw, at)))
            at += 8 * stacks
        self.shared = struct.unpack_from(f"<{stacks}I", raw, at)
        self.added = struct.unpack_from(f"<{stacks}I", raw, at + 4 * stacks)
        self.functions = struct.unpack_from(f"<{nodes}I", raw, at + 8 * stacks)
        at += 8 * stacks + 4 * nodes
        self.node_classes = list(raw[at:])
        assert len(self.node_classes) == (nodes if self.about["byNode"] else 0)

    def stacks(self) -> list[tuple[str, ...]]:
        """Names, unfolded."""
        found: list[tuple[str, ...]] = []
        path: list[str] = []
        node = 0
        for shared, added in zip(self.shared, self.added, strict=True):
            del path[shared:]
            path += [self.about["names"][f] for f in self.functions[node : node + added]]
            node += added
            found.append(tuple(path))
        return found


def profile() -> Profile:
    samples = [
        Sample((Frame("main"), Frame("b", "kernel", LIB, 1)), (5, 1), WHO),
        Sample((Frame("main"), Frame("b", "kernel", LIB, 2)), (6, 1), WHO),
        Sample((Frame("main"), Frame("a")), (7, 0), WHO),
        Sample((Frame("main"),), (0, 3), WHO),
        Sample((Frame("left out"),), (0, -1), WHO),
    ]
    return Profile([OFF_CPU, ValueType("max", "nanoseconds", "max"), COUNT], [
        sample._replace(values=(sample.values[0], 99, sample.values[1])) for sample in samples
    ])  # fmt: skip


def test_distinct_stacks_once_with_all_values_that_add_up() -> None:
    block = Block(profile())
    assert block.about["values"] == [["off-cpu", "nanoseconds"], ["count", "count"]]
    assert block.stacks() == [("p-7", "main"), ("p-7", "main", "a"), ("p-7", "main", "b")]
    assert block.values == [[0, 7, 11], [3, 0, 2]]
    assert (block.shared, block.added) == ((0, 2, 2), (2, 1, 1))


def test_functions_have_their_kind_module_and_colour() -> None:
    about = Block(profile()).about
    by_name = {name: i for i, name in enumerate(about["names"])}
    kinds = [about["kinds"][by_name[name]] for name in ("p-7", "main", "b")]
    assert [about["labels"][kind] if kind >= 0 else "" for kind in kinds] == ["", "native", "kernel"]
    assert [about["modules"][by_name[name]] for name in ("p-7", "main", "b")] == [-1, -1, 0]
    assert about["paths"] == ["/opt/lib.so"]
    css = [about["classes"][about["css"][by_name[name]]][0] for name in ("p-7", "main", "b")]
    assert css == ["r", "n", "k"]
    assert [label for _, label in about["legend"]] == ["kernel", "native"]
    assert about["root"].startswith("r")


def test_colours_by_state_are_those_that_most_of_a_function_has() -> None:
    waits = [("main", 3, "interruptible"), ("main;read", 5, "interruptible"), ("main;write", 7, "uninterruptible")]
    samples = [
        Sample(tuple(map(Frame, text.split(";"))), (value,), (("state", state),)) for text, value, state in waits
    ]
    block = Block(Profile([OFF_CPU], [*samples, Sample((Frame("lone"),), (1,))]), palette="state")
    told = {
        name: block.about["classes"][css] for name, css in zip(block.about["names"], block.about["css"], strict=True)
    }
    of_state = {text: css[0] for css, text in block.about["legend"]}
    assert {name: css[0] for name, css in told.items()} == {
        "main": of_state["interruptible"],
        "read": of_state["interruptible"],
        "write": of_state["uninterruptible"],
        "lone": of_state["state not known"],
    }


def test_colours_by_state_of_one_function_in_two_stacks() -> None:
    waits = [("main;read;wait", 5, "interruptible"), ("main;write;wait", 7, "uninterruptible")]
    samples = [
        Sample(tuple(map(Frame, text.split(";"))), (value,), (("state", state),)) for text, value, state in waits
    ]
    block = Block(Profile([OFF_CPU], samples), palette="state")
    states = {css[0]: text for css, text in block.about["legend"]}
    told = [states[block.about["classes"][number][0]] for number in block.node_classes]
    assert [block.about["names"][f] for f in block.functions] == ["main", "read", "wait", "write", "wait"]
    assert told == ["uninterruptible", "interruptible", "interruptible", "uninterruptible", "uninterruptible"]


def test_options() -> None:
    assert Block(profile(), value="count").about["value"] == 1
    assert Block(profile(), per_thread=True).stacks()[0] == ("p-7", "t-8", "main")
    assert Block(profile(), roots=()).stacks()[0] == ("main",)
    assert ("b", "main", "p-7") in Block(profile(), reverse=True).stacks()
    about = Block(profile(), title="T", subtitle="S", notes=("N",), unit="waits", inverted=True).about
    assert (about["title"], about["subtitle"], about["notes"], about["inverted"]) == ("T", "S", ["N"], True)
    assert about["values"] == [["off-cpu", "waits"], ["count", "count"]]
    with pytest.raises(StallscopeError):
        Block(profile(), value="max")


def test_differential_only_if_it_is() -> None:
    types = [ValueType("after", "count"), ValueType("before", "count")]
    sample = Sample((Frame("f"),), (0, 3))
    assert Block(Profile(types, [sample])).about["differential"]
    gone = Sample((Frame("g"),), (0, 5_000_000))
    assert Block(Profile(types, [sample, gone])).about["notes"] == ["gone: g -5,000,000"]
    assert Block(Profile(types, [sample])).values == [[0], [3]]
    assert not Block(Profile([*types, COUNT], [Sample((Frame("f"),), (1, 3, 4))])).about["differential"]


def test_hostile_text_is_printable_and_losses_are_told() -> None:
    content = Profile([ValueType(HOSTILE, HOSTILE)], [Sample((Frame(HOSTILE, "native", Module(HOSTILE)),), (1,))],
                      HOSTILE, HOSTILE, lost={HOSTILE: 3}, comments=[HOSTILE])  # fmt: skip
    about = Block(content).about
    shown = printable(HOSTILE)
    assert about["title"] == about["host"] == about["values"][0][0] == about["values"][0][1] == shown
    assert (about["names"], about["paths"], about["notes"]) == ([shown], [shown], [shown])
    assert about["lost"] == [f"lost: 3 {shown}", True]


def test_an_empty_profile_and_empty_stacks() -> None:
    assert Block(Profile([OFF_CPU])).stacks() == []
    block = Block(Profile([OFF_CPU], [Sample((), (5,)), Sample((Frame("f"),), (6,))]))
    assert block.stacks() == [(), ("f",)]
    assert block.values == [[5, 6]]


FRAMES = st.builds(Frame, st.sampled_from("abc"), st.sampled_from(["native", "kernel"]), st.sampled_from([None, LIB]))
SAMPLES = st.builds(
    Sample,
    st.lists(FRAMES, max_size=5).map(tuple),
    st.tuples(st.integers(-1, 10**9), st.integers(-1, 5)),
    st.sampled_from([WHO, (("process", "q"),), ()]),
)


@settings(deadline=None)
@given(st.lists(SAMPLES, max_size=15), st.booleans())
def test_the_order_is_that_of_the_flame_graph(samples: list[Sample], per_thread: bool) -> None:
    content = Profile([OFF_CPU, COUNT], samples)
    block = Block(content, per_thread=per_thread)
    nodes = build(content, WriteOptions(per_thread=per_thread)).nodes
    expected, path = [], []
    for node in nodes:
        path = [*path[: node.depth], node.key.name]
        if node.own:
            expected.append((tuple(path[1:]), node.own))
    found = [(stack, value) for stack, value in zip(block.stacks(), block.values[0], strict=True) if value]
    assert found == expected
