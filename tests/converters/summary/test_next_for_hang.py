"""The command that shows more of a job that stands still."""

from __future__ import annotations

from dataclasses import replace

from collective_profiles import profile_of, standing
from job_profiles import stuck
from stallscope.converters.model import Profile
from stallscope.converters.model.next_step import MISSING_RANK, MISSING_WAITS_FOR, OF_HANGS, RANKS_STAND
from stallscope.converters.model.wait_objects import LABEL, PIPE, ObjectEnd, WaitObject
from stallscope.converters.summary.summarize import summarize
from summary_profiles import CHILD, EXE, FUTEX, READ, user


def told(made: Profile) -> tuple[str, str]:
    step = summarize(made).next_step
    assert step
    return step.command, step.tells


def test_the_rank_that_has_not_come() -> None:
    assert told(stuck()) == ("trace-offcpu -p 101 -d 1 --per-thread -o stacks.html", MISSING_RANK)
    made = profile_of(standing())
    assert told(made) == ("trace-offcpu -p 11 -d 1 --per-thread -o stacks.html", MISSING_RANK)


def test_those_for_whom_it_waits() -> None:
    made = stuck()
    (sample,) = (each for each in made.samples if each.label("pid") == 101 and "nap" in str(each.stack))
    made.samples.remove(sample)
    made.samples.append(sample._replace(stack=READ, labels=tuple(sorted((*sample.labels, (LABEL, 7))))))
    made.objects = [WaitObject(7, PIPE, ends=[ObjectEnd("python loader.py", 77)])]
    assert told(made) == ("trace-wall -p 101,77 -d 5", MISSING_WAITS_FOR)
    made.objects = []
    assert told(made) == ("trace-wall -p 101 --children -d 5", MISSING_WAITS_FOR), "they may be its own"
    made.samples[-1] = sample._replace(stack=CHILD)
    assert told(made) == ("trace-wall -p 101 --children -d 5", MISSING_WAITS_FOR)


def test_one_that_calls_something_else() -> None:
    made = stuck(out=-1)
    made.samples[2] = made.samples[2]._replace(stack=(*user(EXE, "main", "save"), *user(None, "MPI_Barrier"), *FUTEX))
    assert told(made) == ("trace-offcpu -p 102 -d 1 --per-thread -o stacks.html", RANKS_STAND)
    made = profile_of(standing(what="broadcast", size=4096))
    assert told(made) == ("trace-offcpu -p 11 -d 1 --per-thread -o stacks.html", RANKS_STAND)


def test_a_rank_that_has_ended_cannot_be_traced() -> None:
    of = standing()
    ended = replace(of, standing=(of.standing[0], replace(of.standing[1], has_ended=True), *of.standing[2:]))
    assert told(profile_of(ended))[1] not in OF_HANGS
