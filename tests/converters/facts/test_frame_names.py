from __future__ import annotations

import pytest
from stallscope.converters.facts.frame_names import function_name, label, script_of
from stallscope.converters.model import Frame


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("topk", "topk"),
        ("topk(at::Tensor const&, long)", "topk"),
        ("at::native::topk<float, 4>(at::Tensor const&) const", "at::native::topk"),
        ("std::vector<int> ops::run<float>(std::function<void (int)>) const &", "ops::run"),
        ("void (anonymous namespace)::f(int)", "{anonymous}::f"),
        ("Queue::operator()(int) const", "Queue::operator()"),
        ("operator<<(std::ostream&, A const&)", "operator<<"),
        ("A::operator bool() const", "A::operator bool"),
        ("my_operator(int)", "my_operator"),
        ("f(int)::{lambda(int)#1}::operator()(int) const", "f::{lambda#1}::operator()"),
        ("<alloc::vec::Vec<T> as core::ops::Drop>::drop", "<alloc::vec::Vec<T> as core::ops::Drop>::drop"),
        ("alloc::vec::Vec<T>::push", "alloc::vec::Vec::push"),
        ("main.(*Server).Serve", "main.(*Server).Serve"),
        ("__mutex_lock.constprop.0", "__mutex_lock"),
        ("f(int) [clone .isra.0] [clone .cold]", "f"),
        ("broken(((", "broken((("),
        ("broken>>", "broken>>"),
        ("()", "()"),
        ("", ""),
    ],
)
def test_function_name(name: str, expected: str) -> None:
    assert function_name(name) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("JS:^loadSession /srv/app.js:2:21", "loadSession"),
        ("JS:*loadSession /srv/app.js:2:21", "loadSession"),
        ("LazyCompile:~get size /srv/my app.js:7:3", "get size"),
        ("JS:^ /srv/app.js:3:27", "app.js:3"),
        ("JS:^openSync node:fs:570:18", "openSync"),
        ("py::load_batch:/srv/train.py", "load_batch"),
        ("py::Loader.<lambda>:/srv/train.py", "Loader.<lambda>"),
        ("Lorg/shop/Cart;::total", "Lorg/shop/Cart;::total"),
        ("JS:", "JS:"),
        ("py::", "py::"),
    ],
)
def test_a_compiled_function_of_a_script_has_the_name_that_the_script_gives_it(name: str, expected: str) -> None:
    assert label(Frame(name, "jit")) == expected


def test_endless_names_of_scripts_are_not_taken_apart() -> None:
    assert script_of("JS:^" + "a" * 10_000 + " /srv/app.js:1:1") is None
