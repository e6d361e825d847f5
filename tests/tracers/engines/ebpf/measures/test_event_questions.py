from __future__ import annotations

import pytest
from stallscope.tracers.engines.ebpf.measures.event_questions import at_entry, at_places, of_tracepoint
from stallscope.tracers.expressions.asked import Asked, Bound, Fault
from stallscope.tracers.expressions.nodes import Input
from stallscope.tracers.expressions.types import U64
from stallscope.tracers.images.usdt import Site, UsdtProbe
from stallscope.tracers.kernel.tracepoints import Field

FIELDS = [Field("pid_t", "pid", 8, 4, is_signed=True), Field("int", "prev_prio", 12, 4, is_signed=True)]


def probe(*arguments: str) -> UsdtProbe:
    return UsdtProbe("shop", "sale", tuple(Site(i, i, 0, text) for i, text in enumerate(arguments)))


def said(bound: object) -> str:
    assert isinstance(bound, Fault)
    return str(bound)


def test_each_place_has_its_own() -> None:
    asked = Asked.parse(where=["arg1 > 3 && pid"], hists=["arg2"])
    bounds = at_places(asked, probe("8@%rax 4@%ebx", "8@%rcx 4@%ebx", "8@%rax 4@%ebx"))
    assert not isinstance(bounds, Fault)
    assert bounds[0] == bounds[2] != bounds[1]


def test_what_one_place_lacks_is_not_asked() -> None:
    asked = Asked.parse(hists=["arg2"])
    assert "not in all places" in said(at_places(asked, probe("8@%rax 4@%ebx", "8@%rcx")))
    assert "shop:sale has no arguments" in said(at_places(asked, probe("", "")))
    assert "what a call returns" in said(at_places(Asked.parse(hists=["retval"]), probe("8@%rax")))
    assert "'n' is not known" in said(at_places(Asked.parse(hists=["n"]), probe("8@%rax")))


def test_fields_of_a_tracepoint() -> None:
    asked = Asked.parse(where=["prev_prio < 100 && pid != args.pid"])
    assert isinstance(of_tracepoint(asked, "sched:sched_switch", FIELDS), Bound)
    assert "'prev_prio' is not known" in said(of_tracepoint(asked, "sched:sched_switch", FIELDS[:1]))


def test_entries_of_functions() -> None:
    named = {"n": Input(U64, "arg2"), "retval": Input(U64, "retval")}
    assert at_entry(Asked.parse(sums=["n"]), named) != at_entry(Asked.parse(sums=["arg1"]), named)
    for parameters in (None, named):
        for late in ("retval", "duration"):
            with pytest.raises(Fault, match="here only entries are seen"):
                at_entry(Asked.parse(sums=[late]), parameters)
