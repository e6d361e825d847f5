from __future__ import annotations

from dataclasses import replace

import pytest
from stallscope.converters.model import Stack
from stallscope.converters.model.group_limits import MEMORY, GroupLimit
from stallscope.converters.phrases.sentences import Sentences
from stallscope.converters.rules.reclaim import Reclaim, find
from stallscope.converters.summary.summarize import summarize
from summary_profiles import EXE, SECOND, facts_of, kernel, user
from verdict_profiles import COMPUTE, FREE_SOME, SWAP_IN, sampled

LOOK_UP = user(EXE, "main", "look_up")
DIRECT = (*LOOK_UP, *kernel("asm_exc_page_fault", "alloc_pages_mpol", "try_to_free_pages", "shrink_node"))
TOUCH = (*LOOK_UP, *kernel("asm_exc_page_fault", "handle_mm_fault", "do_anonymous_page"))
NAMED = (*user(EXE, "main", "do_swap_page"), *kernel("asm_sysvec_apic_timer_interrupt"))


def test_memory_is_short() -> None:
    facts = facts_of(sampled(SWAP_IN, FREE_SOME, DIRECT, COMPUTE, samples=(90, 60, 30, 20)))
    (verdict,) = find(facts)
    assert (verdict.rule, verdict.kind, verdict.pids, verdict.time) == ("reclaim", "memory", {7}, 9 * SECOND)
    kinds = (("swaps", 90), ("at-limit", 60), ("frees", 30))
    assert verdict.detail == Reclaim(kinds, 200, ("main", "look_up", "page fault"))
    assert Sentences(facts).of(verdict) == (
        "About 90 % of the time on cores of the main thread of train goes into getting memory, which is short, in "
        "main → look_up → page fault: about 45 % swaps in, about 30 % frees some at the limit of its control group, "
        "about 15 % frees some of the host (200 samples); it runs for 100.0 % of its time, and waits for a core for "
        "0.0 %."
    )


@pytest.mark.parametrize(
    ("stacks", "samples"),
    [
        ((SWAP_IN, COMPUTE), (29, 71)),
        ((SWAP_IN,), (9,)),
        ((TOUCH, COMPUTE), (90, 10)),
        ((NAMED,), (100,)),
    ],
)
def test_little_of_it_few_samples_or_something_else(stacks: tuple[Stack, ...], samples: tuple[int, ...]) -> None:
    """First touches of memory, and a program's own function of that name, are no shortage."""
    assert find(facts_of(sampled(*stacks, samples=samples))) == []


def test_it_comes_before_what_runs() -> None:
    told = summarize(sampled(SWAP_IN, FREE_SOME)).answer
    assert "goes into getting memory" in told[0]
    assert summarize(sampled(TOUCH, COMPUTE)).judged.verdicts[0].rule == "busy"


def test_the_limit_that_was_reached() -> None:
    profile = sampled(SWAP_IN, FREE_SOME, COMPUTE)
    limit = GroupLimit("/job", MEMORY, "memory.high", 64 << 20, 3, SECOND, [], [7])
    profile.group_limits = [limit]
    facts = facts_of(profile)
    (verdict,) = find(facts)
    assert isinstance(verdict.detail, Reclaim)
    assert verdict.detail.limit == limit
    assert "; control group /job: memory.high 64 MiB, reached 3 times); it runs" in Sentences(facts).of(verdict)
    assert summarize(profile).to_json()["verdicts"][0]["evidence"]["limit"]["cgroup"] == "/job"
    profile.group_limits = [replace(limit, pids=[8])]
    (verdict,) = find(facts_of(profile))
    assert isinstance(verdict.detail, Reclaim)
    assert verdict.detail.limit is None
