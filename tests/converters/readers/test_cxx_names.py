from __future__ import annotations

import pytest
from stallscope.converters.readers.cxx_names import arguments_at


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
