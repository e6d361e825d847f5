from __future__ import annotations

from stallscope.converters.facts.inner_function import functions, with_inner
from stallscope.converters.model import Frame, Module
from stallscope.converters.scan.hot import hot_of
from summary_profiles import EXE, LIBC, facts_of, kernel, user
from verdict_profiles import sampled

ZLIB = Module("/usr/lib/libz.so.1")
CYTHON = user(Module("/usr/lib/_errors.so"), "__Pyx_CyFunction_Call")
START = (*user(LIBC, "start_thread"), *user(EXE, "main", "load"), *CYTHON)
INFLATE = (*START, *user(ZLIB, "inflate"), Frame("[libz.so.1+0xaa60]", "native", ZLIB))
CHECK = (*START, *user(ZLIB, "inflate", "adler32"))
OTHER = (*START, *user(ZLIB, "crc32"))
LOAD = ("main", "load", "__Pyx_CyFunction_Call")


def test_functions_that_have_names_and_do_not_only_call_others() -> None:
    assert functions(INFLATE) == (*LOAD, "inflate")
    assert functions((*START, *kernel("ksys_read"))) == LOAD


def test_the_innermost_one_that_most_samples_are_in() -> None:
    inner = {functions(INFLATE): 60, functions(CHECK): 30, functions(OTHER): 10}
    assert with_inner(LOAD, inner, 100) == (*LOAD, "…", "inflate")
    inner = {functions(INFLATE): 10, functions(CHECK): 80, functions(OTHER): 10}
    assert with_inner(LOAD, inner, 100) == (*LOAD, "…", "adler32")


def test_a_place_that_hides_nothing_stays() -> None:
    assert with_inner(LOAD, {functions(INFLATE): 50, functions(OTHER): 50}, 100) == LOAD
    assert with_inner(LOAD, {LOAD: 100}, 100) == LOAD
    assert with_inner((), {}, 0) == ()
    assert with_inner(LOAD, {functions(INFLATE): 0}, 0) == LOAD, "a place without samples"
    told = (*LOAD, "inflate")
    assert with_inner(told, {functions(INFLATE): 100}, 100) == told, "it is told already"


def test_a_function_that_calls_itself_is_told_once() -> None:
    inner = {("main", "walk", "walk", "walk", "visit"): 40, ("main", "walk", "visit"): 60}
    assert with_inner(("main", "walk"), inner, 100) == ("main", "walk", "…", "visit")


def test_rows_of_processes_have_it() -> None:
    facts = facts_of(sampled(INFLATE, OTHER, samples=(90, 10)))
    (pid,) = {pid for pid, _ in facts.runs}
    ((frames, samples),) = hot_of(facts, (pid,)).told
    assert (frames[-2:], samples) == (("…", "inflate"), 100)
