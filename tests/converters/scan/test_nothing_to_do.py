from __future__ import annotations

import pytest
from stallscope.converters.model import Module, Profile, Stack
from stallscope.converters.scan.process_verdicts import process_verdicts
from summary_profiles import CHILD, EXE, MS, SECOND, SLEEP, Tracee, empty, facts_of, kernel, user
from verdict_profiles import FSYNC, whole_host

ASKS = (*user(EXE, "main", "query"), *user(Module("/usr/lib/libpq.so.5"), "PQexec"), *kernel("do_sys_poll"))


def kinds(profile: Profile) -> dict[str, str]:
    return {each.name: each.kind for each in process_verdicts(facts_of(profile))}


def shell(runs: int = 10 * MS, stack: tuple = CHILD) -> Profile:  # type: ignore[type-arg]
    profile = empty()
    Tracee(profile, 1, "sh", 1, "sh").run(runs).wait(stack, "interruptible", 10 * SECOND - runs, 900)
    Tracee(profile, 5, "app", 5, "app").run(10 * SECOND)
    return profile


def test_a_shell_that_waits_for_its_child_has_nothing_to_do() -> None:
    assert kinds(whole_host(shell())) == {"sh": "idle", "app": "cpu"}


def test_it_is_told_of_chosen_processes() -> None:
    assert kinds(shell())["sh"] == "child"


@pytest.mark.parametrize(("cores", "kind"), [(0.019, "idle"), (0.021, "child")])
def test_who_works_in_between_is_late(cores: float, kind: str) -> None:
    assert kinds(whole_host(shell(round(cores * 10 * SECOND))))["sh"] == kind


def test_who_asks_is_late() -> None:
    assert kinds(whole_host(shell(stack=ASKS)))["sh"] == "peer"


def test_who_is_blocked_is_held_up() -> None:
    assert kinds(whole_host(shell(stack=FSYNC)))["sh"] != "idle"


@pytest.mark.parametrize(("child", "kind"), [(SLEEP, "idle"), (FSYNC, "child")])
def test_a_shell_whose_child_sleeps_has_nothing_to_do(child: Stack, kind: str) -> None:
    """Chosen processes are idle then, too."""
    profile = shell()
    state = "interruptible" if child is SLEEP else "uninterruptible"
    Tracee(profile, 7, "tool", 7, "tool").wait(child, state, 10 * SECOND, 9)
    profile.threads = [each for each in profile.threads if each.pid != 5]
    assert kinds(profile)["sh"] == kind
