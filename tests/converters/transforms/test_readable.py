from __future__ import annotations

import pytest
from stallscope.converters.model import Frame, Module, Profile, Sample, ValueType
from stallscope.converters.model.details import Details, Function
from stallscope.converters.model.scheduling import Scheduling
from stallscope.converters.model.timeline import Span, Timeline, Track
from stallscope.converters.names import demangle
from stallscope.converters.transforms.readable import LEFT, demangled

CPP = Frame("_ZN1a1bIiEEvT_i", "native", Module("/bin/x"), 0x40)
RUST = Frame("_$LT$u8$u20$as$u20$core..clone..Clone$GT$::clone::h7bfab8630dda96cf")
V0 = Frame("_RNvC6_123foo3bar_[i]", "jit")
PLAIN = Frame("main")


def profile(*stacks: tuple[Frame, ...]) -> Profile:
    return Profile([ValueType("cpu", "nanoseconds")], [Sample(stack, (i + 1,)) for i, stack in enumerate(stacks)])


def names(shown: Profile) -> list[list[str]]:
    return [[frame.name for frame in sample.stack] for sample in shown.samples]


def test_names_of_cpp_and_rust() -> None:
    given = profile((PLAIN, CPP), (PLAIN, RUST), (V0,), ())
    shown = demangled(given)
    assert names(shown) == [
        ["main", "void a::b<int>(int, int)"],
        ["main", "<u8 as core::clone::Clone>::clone"],
        ["123foo::bar_[i]"],
        [],
    ]
    assert shown.samples[0].stack[1] == CPP._replace(name="void a::b<int>(int, int)")
    assert [sample.values for sample in shown.samples] == [sample.values for sample in given.samples]
    assert given.samples[0].stack == (PLAIN, CPP)


def test_without_arguments() -> None:
    other = Frame("f(int)")
    assert names(demangled(profile((other, CPP, RUST)), arguments=False)) == [
        ["f(int)", "void a::b<int>", "<u8 as core::clone::Clone>::clone"]
    ]


def test_behind_the_module_in_names_of_dtrace() -> None:
    shown = demangled(profile((Frame("libx.so.1`_ZN3foo3barEv"), Frame("x`_R")), (Frame("x`_ZN3foo3barEv_[k]"),)))
    assert names(shown) == [["libx.so.1`foo::bar()", "x`_R"], ["x`foo::bar()_[k]"]]


def test_nothing_to_do_is_the_same_profile() -> None:
    given = profile((PLAIN, Frame("Foo$Bar"), Frame("a::h12::b")))
    assert demangled(given) is given


def test_the_calls_of_a_timeline_are_renamed() -> None:
    given = profile((PLAIN, CPP))
    given.timeline = Timeline([Track(spans=[Span(0, 9, PLAIN), Span(1, 2, CPP)])])
    shown = demangled(given)
    assert shown.timeline is not None
    assert [span.frame.name for span in shown.timeline.tracks[0].spans] == ["main", "void a::b<int>(int, int)"]


def test_the_stacks_of_the_schedulers_events_are_renamed() -> None:
    given = profile((PLAIN,))
    given.scheduling = Scheduling(5, stacks=[(PLAIN, CPP)])
    shown = demangled(given).scheduling
    assert shown is not None
    assert [[frame.name for frame in stack] for stack in shown.stacks] == [["main", "void a::b<int>(int, int)"]]
    assert given.scheduling.stacks == [(PLAIN, CPP)]


def test_what_no_demangler_could_read_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demangle, "_run_worker", lambda names, seconds: [])
    shown = demangled(profile((CPP,)))
    assert names(shown) == [[CPP.name]]
    assert shown.lost == {LEFT: 1}


def test_a_pprof_file_keeps_its_own_names() -> None:
    given = profile((CPP, PLAIN))
    given.details = Details(functions={CPP: Function("", 7, 9)}, groups={PLAIN: [(PLAIN, CPP)]})
    shown = demangled(given)
    renamed = shown.samples[0].stack[0]
    assert shown.details == Details(
        functions={renamed: Function("", 7, 9, 0, CPP.name)}, groups={PLAIN: [(PLAIN, renamed)]}
    )
    assert given.details.functions == {CPP: Function("", 7, 9)}
