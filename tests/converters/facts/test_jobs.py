from __future__ import annotations

import pytest
from job_profiles import MPIRUN, job, rank
from stallscope.converters.facts.jobs import (
    BY_ANCESTOR,
    BY_CGROUP,
    BY_IDENTITY,
    BY_NAME,
    BY_PARENT,
    BY_SOCKETS,
    CREATION,
    Job,
    jobs_of,
)
from stallscope.converters.model import Frame, Module, Profile, Sample, Stack
from stallscope.converters.model.origins import MEMORY, Ancestor
from stallscope.converters.model.wait_objects import LABEL, TCP, ObjectEnd, WaitObject
from summary_profiles import CHILD, EXE, FUTEX, LIBC, POLL, SECOND, SLEEP, Tracee, empty, facts_of, kernel, user

SHELL = Ancestor(40, "bash")
A, B = (Ancestor(50, "torchrun"), SHELL), (Ancestor(60, "torchrun"), SHELL)


def jobs(profile: Profile) -> tuple[Job, ...]:
    return jobs_of(facts_of(profile))


def pids(profile: Profile) -> list[list[int]]:
    return [[each.pid for each in found.ranks] for found in jobs(profile)]


def test_a_job_has_its_ranks_in_order_and_knows_who_started_them() -> None:
    made = empty()
    for pid, number in ((100, 2), (101, 0), (102, 1)):
        rank(made, pid, number, size=16, gpu=str(number))
    (found,) = jobs(made)
    assert [(each.number, each.pid, each.gpus, each.source) for each in found.ranks] == [
        (0, 101, "0", "environment"),
        (1, 102, "1", "environment"),
        (2, 100, "2", "environment"),
    ]
    assert (found.size, found.launcher, found.pids) == (16, MPIRUN, {100, 101, 102})
    assert BY_PARENT in found.evidence


def test_one_rank_is_no_job() -> None:
    assert jobs(job(0.5)) == ()


def test_jobs_of_one_shell_are_kept_apart_by_their_launchers() -> None:
    made = empty()
    for i in range(4):
        rank(made, 100 + i, i // 2, above=A if i % 2 else B)
    assert pids(made) == [[100, 102], [101, 103]]


def test_jobs_that_one_process_starts_one_after_the_other_are_kept_apart() -> None:
    """Two jobs have ranks of the same numbers."""
    made = empty()
    for i in range(6):
        rank(made, 100 + i, i % 3, above=(SHELL,))
    assert pids(made) == [[100, 101, 102], [103, 104, 105]]


@pytest.mark.parametrize(
    ("names", "values", "evidence"),
    [
        (("SLURM_JOB_ID", "SLURM_STEP_ID"), (("7", "0"), ("7", "1")), BY_IDENTITY),
        (("PMIX_NAMESPACE",), (("prterun-1@1",), ("prterun-2@1",)), BY_IDENTITY),
        (("MASTER_ADDR", "MASTER_PORT"), (("node1", "29500"), ("node1", "29501")), BY_IDENTITY),
        (("TORCHELASTIC_RUN_ID", "MASTER_PORT"), (("none", "29500"), ("none", "29501")), BY_IDENTITY),
    ],
)
def test_the_environment_tells_jobs_apart(
    names: tuple[str, ...], values: tuple[tuple[str, ...], ...], evidence: str
) -> None:
    """Ranks have no process above them in common, and the two jobs are of one size."""
    made = empty()
    for i in range(4):
        above = (Ancestor(200 + i, "bash"),)
        rank(made, 100 + i, i // 2, above=above, cgroup="", variables=dict(zip(names, values[i % 2], strict=True)))
    assert pids(made) == [[100, 102], [101, 103]]
    assert jobs(made)[0].evidence == (evidence,)


def test_jobs_of_different_sizes_are_kept_apart() -> None:
    made = empty()
    for i in range(2):
        rank(made, 100 + i, i, size=2)
        rank(made, 110 + i, 2 + i, size=4)
    assert pids(made) == [[100, 101], [110, 111]]


def test_programs_that_differ_are_no_job_unless_the_environment_says_so() -> None:
    for variables, found in (({}, []), ({"PMIX_NAMESPACE": "x"}, [[100, 101]])):
        made = empty()
        rank(made, 100, 0, executable="/opt/ocean", variables=variables)
        rank(made, 101, 1, executable="/opt/ice", variables=variables)
        assert pids(made) == found


def test_a_name_alone_shows_nothing() -> None:
    made = empty()
    for i in range(2):
        rank(made, 100 + i, i, above=(Ancestor(60 + i, "bash"),), cgroup=f"/{i}")
    assert jobs(made) == ()


@pytest.mark.parametrize(
    ("above", "cgroup", "evidence"),
    [
        ((Ancestor(60, "bash"), MPIRUN), "", BY_ANCESTOR),
        ((Ancestor(60, "bash"),), "/job", BY_CGROUP),
    ],
)
def test_a_process_above_or_a_control_group_show_it(above: tuple[Ancestor, ...], cgroup: str, evidence: str) -> None:
    made = empty()
    for i in range(2):
        shell = Ancestor(above[0].pid + i, "bash")
        rank(made, 100 + i, i, above=(shell, *above[1:]), cgroup=cgroup)
    (found,) = jobs(made)
    assert found.evidence == (evidence,)


def test_a_connection_shows_it() -> None:
    for other, number in ((101, 1), (999, 0)):
        made = empty()
        for i in range(2):
            rank(made, 100 + i, i, above=(), cgroup="")
        made.objects = [WaitObject(7, TCP, local="127.0.0.1:1", remote="127.0.0.1:2", ends=[ObjectEnd("train", other)])]
        first = Tracee(made, 100, "train", 100, "train")
        made.threads.pop()
        first.wait(POLL, "interruptible", SECOND)
        last = made.samples[-1]
        made.samples[-1] = Sample(last.stack, last.values, tuple(sorted([*last.labels, (LABEL, 7)])))
        assert len(jobs(made)) == number
        assert not number or jobs(made)[0].evidence == (BY_SOCKETS,)


def test_captures_without_origins_have_names_and_environments() -> None:
    made = job(0.5, 0.5)
    made.origins = []
    (found,) = jobs(made)
    assert found.evidence == (BY_NAME,)
    assert found.launcher is None


def test_what_a_rank_starts_is_its_worker() -> None:
    """Workers inherit the variables."""
    made = job(0.5, 0.5)
    for pid, parent in ((200, 100), (201, 100), (202, 101)):
        rank(made, pid, parent - 100, above=(Ancestor(parent, "train"), MPIRUN))
    (found,) = jobs(made)
    assert [(each.pid, each.workers) for each in found.ranks] == [(100, (200, 201)), (101, (202,))]
    assert facts_of(made).ranks == {100: 0, 101: 1}


def test_a_shell_that_waits_for_the_rank_is_none() -> None:
    made = empty()
    for i in range(2):
        shell = Tracee(made, 60 + i, "bash", 60 + i, "bash").wait(CHILD, "interruptible", 10 * SECOND, still=True)
        other = rank(made, 300, i, above=(MPIRUN,), executable="/bin/bash")  # its labels and origin
        made.threads.remove(other.times)
        made.samples = [each for each in made.samples if each.label("pid") != 300]
        made.processes[-1].pid = made.origins[-1].pid = shell.times.pid
        rank(made, 100 + i, i, above=(Ancestor(60 + i, "bash"), MPIRUN))
    assert pids(made) == [[100, 101]]


SIGNAL = (*user(EXE, "main"), *user(LIBC, "sigsuspend"), *kernel("__x64_sys_rt_sigsuspend", "sigsuspend"))


def started_by(*wrappers: str, stack: Stack = SIGNAL, number: int = 0) -> Profile:
    """Two ranks with these processes around each, from the outermost on, which have its variables, wait like this, and
    run for the rest of the time."""
    made = empty()
    for i in range(2):
        above = [MPIRUN]
        for j, program in enumerate(wrappers):
            pid = 200 + 10 * j + i
            rank(made, pid, i + number, above=above, executable=f"/bin/{program}", name=program)
            made.threads.pop()
            made.samples = [each for each in made.samples if each.label("pid") != pid]
            Tracee(made, pid, program, pid, program).wait(stack, "interruptible", 10 * SECOND, still=True)
            above = [Ancestor(pid, program), *above]
        rank(made, 100 + i, i, above=above)
    return made


@pytest.mark.parametrize("wrappers", [("timeout",), ("env", "timeout"), ("bash", "timeout", "bash")])
@pytest.mark.parametrize("stack", [SIGNAL, CHILD])
def test_what_only_waits_for_its_child_of_the_same_rank_is_none(wrappers: tuple[str, ...], stack: Stack) -> None:
    (found,) = jobs(started_by(*wrappers, stack=stack))
    assert [(each.number, each.pid, each.workers) for each in found.ranks] == [(0, 100, ()), (1, 101, ())]
    assert found.launcher == MPIRUN


@pytest.mark.parametrize(
    "made",
    [
        started_by("timeout", stack=POLL),  # it may serve others
        started_by("timeout", number=5),  # its child has another rank
    ],
)
def test_others_that_have_a_child_are_ranks(made: Profile) -> None:
    assert [200, 201] in pids(made)


def test_a_process_that_waits_for_signals_with_several_children_is_a_rank() -> None:
    made = started_by("timeout")
    for i in range(2):
        rank(made, 300 + i, i, above=[Ancestor(200 + i, "timeout"), MPIRUN])
    assert pids(made) == [[200, 201]]


def test_a_process_whose_child_has_no_rank_is_one() -> None:
    made = started_by("timeout", "sudo")
    for each in made.processes:
        each.ranks = {} if each.pid in (210, 211) else each.ranks
    assert pids(made) == [[200, 201]]


def test_a_process_of_the_same_program_is_the_worker_of_its_rank() -> None:
    made = started_by("train")
    for each in made.origins:
        each.executable = "/opt/train"
    assert pids(made) == [[200, 201]]


def test_a_batch_script_is_no_rank() -> None:
    """Slurm gives it the variables of rank 0, and what it starts gets its own."""
    made = empty()
    rank(made, 60, 0, above=(Ancestor(50, "slurmstepd"),), executable="/usr/bin/torchrun")
    for i in range(2):
        rank(made, 100 + i, i, above=(Ancestor(60, "torchrun"), Ancestor(50, "slurmstepd")))
    assert pids(made) == [[100, 101]]


def test_rank_0_may_have_started_the_others() -> None:
    made = empty()
    rank(made, 100, 0)
    for i in (1, 2):
        rank(made, 100 + i, i, above=(Ancestor(100, "train"), MPIRUN), source=MEMORY)
    (found,) = jobs(made)
    assert [each.pid for each in found.ranks] == [100, 101, 102]
    assert [each.source for each in found.ranks] == ["environment", "memory", "memory"]


def test_processes_that_meet_are_ranks_in_the_order_in_which_they_were_started() -> None:
    made = empty()
    for pid in (102, 100, 101):
        rank(made, pid, None)
    (found,) = jobs(made)
    assert [(each.number, each.pid, each.source) for each in found.ranks] == [
        (0, 100, CREATION),
        (1, 101, CREATION),
        (2, 102, CREATION),
    ]
    assert facts_of(made).ranks == {}, "a guess is no name"


def test_a_rank_that_does_not_meet_has_threads_of_the_library() -> None:
    """One that stands elsewhere, of a job that hangs; a worker that it has forked has none of its threads."""

    def job(*helper: Frame) -> Profile:
        made = empty()
        for pid in (100, 101, 102, 103):
            rank(made, pid, None, own=0.0 if pid < 102 else 1)
        Tracee(made, 102, "train", 1102, "pt_gloo_runloop").wait((*helper, *FUTEX), "interruptible", SECOND)
        return made

    assert pids(job(*user(Module("/opt/lib/libtorch_cpu.so"), "c10d::ProcessGroupGloo::runLoop(int)"))) == [
        [100, 101, 102]
    ]
    assert pids(job(*user(EXE, "c10d::ProcessGroupGloo::runLoop(int)"))) == [[100, 101]], "the program's own function"
    assert pids(job(*user(Module("/opt/lib/libtorch_cpu.so"), "at::launch"))) == [[100, 101]], "any other thread"


def test_processes_that_do_not_meet_are_none() -> None:
    made = empty()
    for pid in (100, 101):
        rank(made, pid, None, own=1)
        made.threads[-1].blocked, made.threads[-1].wall = {}, 0
        Tracee(made, pid, "train", pid, "train").wait(SLEEP, "interruptible", SECOND)
    assert jobs(made) == ()


def test_the_largest_job_comes_first() -> None:
    made = empty()
    for i in range(2):
        rank(made, 100 + i, i, above=A, cgroup="/a")
    for i in range(3):
        rank(made, 110 + i, i, above=B, cgroup="/b")
    assert pids(made) == [[110, 111, 112], [100, 101]]
