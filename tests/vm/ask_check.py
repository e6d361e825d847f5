"""The check of questions about calls, in a guest: the host's bcc compiles them there."""

from __future__ import annotations

from dataclasses import replace

from runner import FOLDER
from stallscope.tracers.command.asking import Compiler
from stallscope.tracers.engines.ebpf.measures.answers import LOSSES
from stallscope.tracers.expressions.asked import Asked
from stallscope.tracers.measures.calls import AskedCalls
from stallscope.tracers.probe_targets.targets import Target, Targets
from tracing import Traced

_ROUNDS = 20


def calls(lines: list[str], *, over: int = 0) -> AskedCalls:
    """A measure that asks about functions of the workload ``sleeps``. ``lines``: gets those of --print."""
    asked = Asked.parse(
        where=["duration > 500000 && retval == retval && arg1 != 0"],
        hists=["*u8*(arg1) & 0"],
        sums=["duration"],
        prints=['"%s %d", comm, duration'],
    )
    targets = Targets.of([Target.parse(f"{FOLDER}/sleeps:sleep_*ms")])
    return AskedCalls(
        targets,
        over=over,
        asked=replace(asked, over=over),
        compiler=Compiler(),
        show=lambda name, line: lines.append(f"{name} {line.text}"),
    )


def check(traced: Traced, lines: list[str], functions: dict[str, int]) -> int:
    """The answers are those to the calls that count; all calls of these functions do. Returns how many calls these are.
    Under emulation, others can be slow, too."""
    counts = {call.name: call.count for call in traced.profile.calls}
    assert {name: counts[name] for name in functions} == functions, (counts, traced.profile.comments)
    for call in traced.profile.calls:
        answers = {answer.ask: answer for answer in traced.profile.answers if answer.name == call.name}
        assert answers["hist"].count == answers["sum"].count == call.count, answers
        assert answers["sum"].sum == call.total, (answers, call)
        mine = [line.split() for line in lines if line.startswith(f"{call.name} ")]
        assert [each[1] for each in mine] == ["sleeps"] * call.count, mine
        assert sum(int(each[2]) for each in mine) == call.total
    lost = {kind: traced.profile.lost[kind] for kind in (*LOSSES.values(), "calls")}
    assert not any(lost.values()), lost
    return sum(counts.values())


def functions(*lengths: int) -> dict[str, int]:
    """Number of the workload's calls of those that sleep for so many ms."""
    return {f"sleep_{ms}ms": _ROUNDS * {1: 4, 10: 2, 25: 1}[ms] for ms in lengths}
