from __future__ import annotations

from dataclasses import replace

from stallscope.converters.model.steps import SlowSteps, Spent, StepRun
from stallscope.converters.phrases.steps import slow_steps
from stallscope.converters.summary.steps import steps_of
from step_traces import recorded, slow


def test_what_runs_in_slow_steps_is_told_by_samples() -> None:
    """Each sample of the slow ones stands for 255 ns / 102; of the others, for 1 ns."""
    steps = replace(steps_of(recorded())[0], steps=Spent(100, 1000, 700, 200), slow=slow(20))
    assert steps.slow
    usual, save, kernel, rare = ("step", "usual"), ("step", "save"), ("step", "read"), ("step", "rare")

    def told(*runs: StepRun, samples: int = 102) -> str:
        spent = replace(steps.slow.spent, samples=samples, ran=runs)
        others = replace(steps.slow.others, samples=380, ran=(StepRun(usual, 330), StepRun(kernel, 50)))
        text = slow_steps(steps, SlowSteps(spent, others, 3, 20))
        return text[text.index("more: ") + 6 : text.index(", 40 ns blocked")]

    assert told(StepRun(save, 60), StepRun(usual, 12), StepRun(kernel, 30)) == (
        "47 ns on a core (30 ns a step in step → save, 15 ns a step in step → read, by 102 samples)"
    )
    # Few samples, or not more than chance may bring.
    assert told(StepRun(rare, 9)) == "47 ns on a core"
    assert told(StepRun(usual, 12)) == "47 ns on a core"
    assert told(StepRun((), 80)) == "47 ns on a core"
    assert told() == told(samples=0) == "47 ns on a core"
