from __future__ import annotations

import pytest
from stallscope.converters.flame.tree import Key, Node, NodeKind, Tree
from stallscope.converters.model import Profile, ValueType
from stallscope.converters.writers.colors import palette as palettes
from stallscope.converters.writers.colors.palette_names import LANGUAGES, ONE_HUE

CPU = Profile([ValueType("cpu", "count")])


def node(name: str, kind: NodeKind = "native") -> Node:
    return Node(1, Key(name, kind, ""), 0, 10, 10, 0)


def group(palette: str, name: str, kind: NodeKind) -> str:
    """Text of the legend for a function."""
    chosen = palettes.choose(palette, CPU, "cpu")
    one = node(name, kind)
    [(css, label)] = chosen.legend(Tree(CPU.value_types[0], "", [one], 2, 0))
    assert css[:-1] == chosen.css_class(one)[:-1]
    return label


@pytest.mark.parametrize(
    ("palette", "name", "kind", "label"),
    [
        ("java", "Lio/netty/Channel:::read", "native", "Java"),
        ("java", "java/lang/Thread.run", "native", "Java"),
        ("java", "org/x/Y", "jit", "Java"),
        ("java", "io/x_[i]", "native", "inlined"),
        ("java", "JavaMain::call", "native", "C++"),
        ("java", "tcp_sendmsg", "kernel", "kernel"),
        ("java", "read", "native", "native"),
        ("js", "LazyCompile:~f /srv/app.js:3", "jit", "JavaScript"),
        ("js", "Builtin:ArrayPush", "jit", "built-in"),
        ("js", "f /srv/app.js", "native", "JavaScript"),
        ("js", "Stub:x", "native", "built-in"),
        ("js", "v8::internal", "native", "C++"),
        ("js", "tcp_sendmsg", "kernel", "kernel"),
        ("js", "read", "native", "native"),
        ("perl", "Perl_runops_standard", "native", "Perl"),
        ("perl", "/x/y.pl", "native", "Perl"),
        ("perl", "std::sort", "native", "C++"),
        ("perl", "read", "native", "native"),
    ],
)
def test_languages_are_told_by_the_name(palette: str, name: str, kind: NodeKind, label: str) -> None:
    assert group(palette, name, kind) == label


@pytest.mark.parametrize("palette", [*LANGUAGES, *ONE_HUE])
def test_roots_and_separators_are_grey(palette: str) -> None:
    chosen = palettes.choose(palette, CPU, "cpu")
    assert chosen.css_class(node("all", "root"))[0] == "r"
    assert chosen.css_class(node("--"))[0] == "s"
    assert f".{chosen.css_class(node('main'))}{{fill:" in chosen.css()


@pytest.mark.parametrize("palette", ONE_HUE)
def test_one_hue_is_the_same_for_all_kinds(palette: str) -> None:
    chosen = palettes.choose(palette, CPU, "cpu")
    assert chosen.css_class(node("f", "kernel")) == chosen.css_class(node("f", "native"))
    assert len({chosen.css_class(node(f"f{i}")) for i in range(100)}) == 8
    assert chosen.legend(Tree(CPU.value_types[0], "", [node("f")], 2, 0)) == []
