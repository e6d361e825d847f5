from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stallscope.converters.model import Frame, Profile, Sample, ThreadTimes, ValueType
from stallscope.converters.model.processes import ProcessTimes
from stallscope.converters.transforms.names import KINDS, What, simplify

NS = [ValueType("off-cpu", "nanoseconds")]


def simpler(name: str, *what: What) -> str:
    return simplify(Profile(NS, [Sample((Frame(name),), (1,))]), what).samples[0].stack[0].name


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("std::vector<int, std::allocator<int> >::push_back(int&&)", "std::vector<…>::push_back(int&&)"),
        ("a<b>::c<d<e>>(f<g>)", "a<…>::c<…>(f<…>)"),
        ("void at::native::topk<float>(at::Tensor)", "void at::native::topk<…>(at::Tensor)"),
        ("operator<<", "operator<<"),
        ("operator<", "operator<"),
        ("operator<=>(X<int> const&)", "operator<=>(X<…> const&)"),
        ("std::operator<< <std::char_traits<char> >(int)", "std::operator<< <…>(int)"),
        ("bool operator< <int>(A<int>)", "bool operator< <…>(A<…>)"),
        ("P<int>::operator->()", "P<…>::operator->()"),
        ("F::operator()<int>(int) const", "F::operator()<…>(int) const"),
        ("f[abi:cxx11]<int>()", "f[abi:cxx11]<…>()"),
        ("auto g<decltype(x->y)>()", "auto g<…>()"),
        ("h<(3 > 2), (1 < 2)>::k", "h<…>::k"),
        ("cooperator<int>", "cooperator<…>"),
        ("<lambda>", "<lambda>"),
        ("train.<locals>.<listcomp>", "train.<locals>.<listcomp>"),
        (
            "<alloc::vec::Vec<T> as core::iter::Extend<T>>::extend",
            "<alloc::vec::Vec<…> as core::iter::Extend<…>>::extend",
        ),
        ("java/lang/Object::<init>", "java/lang/Object::<init>"),
        ("broken<int", "broken<int"),
        ("broken>int>", "broken>int>"),
        ("f(a < b)::g<int>", "f(a < b)::g<…>"),
        ("f(a<b)::g<int>", "f(a<b)::g<…>"),
        ("plain", "plain"),
    ],
)
def test_template_arguments_go_and_other_angles_stay(name: str, expected: str) -> None:
    assert simpler(name, "templates") == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("main::{lambda(int)#12}::operator()(int) const", "main::{lambda(int)#N}::operator()(int) const"),
        ("tokio::run::{closure#3}", "tokio::run::{closure#N}"),
        ("f()::'lambda1'(int)", "f()::'lambda'(int)"),
        ("f()::$_7::operator()", "f()::$_::operator()"),
        ("#12", "#12"),
    ],
)
def test_lambdas_lose_their_numbers(name: str, expected: str) -> None:
    assert simpler(name, "lambdas") == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("[libfoo.so+0x1a2b]", "[libfoo.so+0x…]"),
        ("[0xFFff]", "[0x…]"),
        ("[libfoo.so <7ff0aa>]", "[libfoo.so <…>]"),
        ("<built-in method f at 0x7f00>", "<built-in method f at 0x…>"),
        ("f<12>", "f<12>"),
        ("max0x12", "max0x12"),
    ],
)
def test_addresses_go(name: str, expected: str) -> None:
    assert simpler(name, "addresses") == expected


def test_call_sites_become_one_and_are_added_up() -> None:
    samples = [Sample((Frame("f", address=i),), (i,)) for i in (1, 2, 3)]
    assert simplify(Profile(NS, samples), ["addresses"]).samples == [Sample((Frame("f"),), (6,))]
    assert simplify(Profile(NS, samples), ["templates"]).samples == samples


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("worker-12", "worker-N"),
        ("pt_data_worker_3", "pt_data_worker_N"),
        ("Thread-7 (run)", "Thread-N (run)"),
        ("kworker/3:1-events", "kworker/N:N-events"),
        ("python3", "python3"),
        ("python3.11", "python3.11"),
    ],
)
def test_numbers_of_threads(name: str, expected: str) -> None:
    labels = (("pid", 12), ("process", name), ("state", "a-1"), ("thread", name), ("tid", 13))
    account = ThreadTimes(12, name, 13, name, 5, 5, 0, {})
    made = Profile(NS, [Sample((Frame("f-1"),), (1,), labels)], threads=[account], processes=[ProcessTimes(12, name)])
    changed = simplify(made, ["numbers"])
    assert changed.processes == [ProcessTimes(12, expected)]
    assert changed.samples == [
        Sample(
            (Frame("f-1"),),
            (1,),
            (("pid", 12), ("process", expected), ("state", "a-1"), ("thread", expected), ("tid", 13)),
        )
    ]
    assert changed.threads == [ThreadTimes(12, expected, 13, expected, 5, 5, 0, {})]
    assert account.thread == name


HOSTILE = st.text(st.sampled_from("a1<>()-> operator#{}'$_:[]0x\n\udcff"), max_size=30)


@settings(deadline=None)
@given(HOSTILE, st.sets(st.sampled_from(KINDS)))
def test_any_name_gives_a_name_twice_the_same(name: str, what: set[What]) -> None:
    once = simpler(name or "x", *what)
    assert once
    assert simpler(once, *what) == once


def test_a_hostile_name_takes_no_time_to_speak_of() -> None:
    name = "a" + "<(" * 50_000 + "x" + ">)" * 50_000
    assert simpler(name, *KINDS)
    assert simpler("operator" * 20_000 + " " * 20_000, *KINDS)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ncclKernel_SendRecv_int8_t(ncclWorkElem)", "ncclKernel_SendRecv_int8_t"),
        ("void at::native::add<4, float>(int, at::A<float>)", "void at::native::add<…>"),
        ("## forward (x) ##", "## forward (x) ##"),
        ("Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD (Pinned -> Device)"),
        ("(anonymous namespace)::f<int>()", "(anonymous namespace)::f<…>"),
        ("F::operator()(int) const", "F::operator()"),
        ("(x)", "(x)"),
        ("f(", "f"),
        ("\ud800f(int)", "\ud800f"),
    ],
)
def test_kernels_of_gpus_lose_their_arguments(name: str, expected: str) -> None:
    content = Profile(NS, [Sample((Frame(name, "other"), Frame("g(int)")), (1,))])
    (sample,) = simplify(content, ["templates"]).samples
    assert [frame.name for frame in sample.stack] == [expected, "g(int)"]
    assert simplify(content, ["lambdas"]).samples == content.samples


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ProfilerStep#1009", "ProfilerStep#N"),
        ("Optimizer.step#SGD.step", "Optimizer.step#SGD.step"),
        ("tokio::run::{closure#3}", "tokio::run::{closure#3}"),
        ("f()::{lambda(int)#12}::g", "f()::{lambda(int)#12}::g"),
        ("#12", "#12"),
        ("a#1b", "a#1b"),
    ],
)
def test_steps_lose_their_numbers(name: str, expected: str) -> None:
    assert simpler(name, "numbers") == expected
