from __future__ import annotations

import pytest
from stallscope.converters.names.cxx import arguments_at, inlined_names, without_arguments


@pytest.mark.parametrize(
    ("name", "before", "found"),
    [
        ("main ()", " ", "main "),
        ("main", " ", None),
        ("f(int)", "", "f"),
        ("(anonymous namespace)::f (x=1)", " ", "(anonymous namespace)::f "),
        (
            "std::function<void (int)>::operator()(int) const (a=1)",
            " ",
            "std::function<void (int)>::operator()(int) const ",
        ),
        ("std::function<void (int)>::operator()(int)", "", "std::function<void (int)>::operator()"),
        ("Q::operator< (this=0x1)", " ", "Q::operator< "),
        ("Q::operator<< <int> (a=...)", " ", "Q::operator<< <int> "),
        ("Q::operator-> (a=...)", " ", "Q::operator-> "),
        ("f<(E)1, g<(a)2> >(int)", "", "f<(E)1, g<(a)2> >"),
        ("(int)", "", None),
        ("f<((((", "", None),
        ("a>>>b (x)", " ", "a>>>b "),
    ],
)
def test_where_arguments_begin(name: str, before: str, found: str | None) -> None:
    at = arguments_at(name.encode(), before.encode())
    assert (name[:at] if at >= 0 else None) == found


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("main", ""),
        ("f", "(int)"),
        ("std::function<int (int, int)>::operator()", "(int, int) const"),
        ("std::function<void (std::pair<int, char> const&)>::operator()", "(std::pair<int, char> const&) const"),
        ("std::_Function_handler<int (int), main::{lambda(int)#1}>::_M_invoke", "(std::_Any_data const&, int&&)"),
        ("main::{lambda(int)#1}::operator()", "(int) const"),
        ("f(int) const::{lambda()#1}::operator()", "() const"),
        ("f(int)::local", ""),
        ("f() &&::g[abi:cxx11](int)::h", ""),
        ("a::(anonymous namespace)::b", "(int)"),
        ("(anonymous namespace)::b", ""),
        ("foo[abi:cxx11]", "(int) [clone .isra.0]"),
        ("operator()", "(int)"),
        ("operator<<", "(std::ostream&, int)"),
        ("bool operator< <int>", "(a<int> const&, a<int> const&)"),
        ("x::operator->", "() const"),
        ("x::operator bool", "() const"),
        ("myoperator<int>", "(int)"),
        ("decltype(auto) foo<int>", "(int)"),
        ("std::array<int, (unsigned long)3>::at", "(unsigned long)"),
        ("net/http.(*Client).Do", ""),
        ("main.(*List[go.shape.int]).Push", ""),
        ("<T as core::fmt::Debug>::fmt", ""),
        ("foo", "(int"),
        ("std::vector<void (", ""),
        ("a>>b", "(int)"),
        ("LazyCompile:*exec native regexp.js", ""),
        ("f", "  (int)"),
    ],
)
def test_a_name_without_its_arguments(name: str, arguments: str) -> None:
    assert without_arguments((name + arguments).encode()).decode() == name


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("main", ["main"]),
        ("a->b->c", ["a", "b", "c"]),
        ("LFoo;::<init>->LBar;::run", ["LFoo;::<init>", "LBar;::run"]),
        ("x::operator->*(int)", ["x::operator->*(int)"]),
        ("f<decltype (a->b)>(c)->g", ["f<decltype (a->b)>(c)", "g"]),
        ("a->", ["a", ""]),
    ],
)
def test_functions_that_were_inlined(name: str, parts: list[str]) -> None:
    assert [part.decode() for part in inlined_names(name.encode())] == parts


def test_a_hostile_name_takes_linear_time() -> None:
    for text in (b"(" * 100_000, b"()" * 100_000, b"f(" + b"<" * 100_000, b"operator" * 20_000, b" &" * 50_000):
        without_arguments(b"f(int)" + text)
        inlined_names(b"a->" + text + b"->b" * 50_000)
