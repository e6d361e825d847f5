from __future__ import annotations

import pytest
from stallscope.converters.facts.memory_waits import OF_MEMORY, waits_on
from stallscope.converters.facts.wait_kinds import HELD
from stallscope.converters.model import Stack
from stallscope.converters.model.wait_objects import FILE, LABEL, LIMIT, RECLAIM, SWAP, WaitObject
from summary_profiles import EXE, LIBC, SECOND, Tracee, empty, facts_of, kernel, user

FAULT = ("asm_exc_page_fault", "exc_page_fault", "do_user_addr_fault", "handle_mm_fault")
IN_FAULT = kernel(*FAULT, "filemap_fault", "folio_wait_bit_common")[2:]
IN_COPY = kernel("__x64_sys_write", "copy_from_user", *FAULT, "filemap_fault", "folio_wait_bit_common")


def kind(stack: Stack, number: int = 0) -> str:
    found = waits_on(stack, number)
    return OF_MEMORY[found].kind if found else ""


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ((*FAULT, "do_swap_page", "folio_wait_bit_common"), SWAP),
        ((*FAULT, "shmem_fault", "shmem_swapin_folio"), SWAP),
        ((*FAULT, "charge_memcg", "try_charge_memcg", "try_to_free_mem_cgroup_pages", "reclaim_throttle"), LIMIT),
        ((*FAULT, "do_swap_page", "try_charge_memcg", "try_to_free_mem_cgroup_pages"), LIMIT),
        (("mem_cgroup_handle_over_high", "schedule_timeout"), LIMIT),
        (("__x64_sys_read", "__alloc_pages_slowpath", "try_to_free_pages", "shrink_node"), RECLAIM),
        (("__x64_sys_read", "filemap_read", "folio_wait_bit_common"), ""),
    ],
)
def test_functions_of_the_kernel(names: tuple[str, ...], expected: str) -> None:
    assert kind(kernel(*names)) == expected


def test_memory_comes_before_a_descriptor() -> None:
    reclaims = kernel("__x64_sys_read", "try_charge_memcg", "try_to_free_mem_cgroup_pages")
    assert kind(reclaims, 5) == LIMIT


def test_a_program_that_calls_a_function_like_the_kernel() -> None:
    assert waits_on((*user(EXE, "main", "do_swap_page"), *IN_FAULT), 5) == 5


def test_a_page_fault_of_the_kernel_is_not_on_the_descriptor() -> None:
    """Memory that a program passes to write() may have to be read first, from any file."""
    assert waits_on(IN_COPY, 5) == 0
    assert waits_on(IN_FAULT, 5) == 5
    assert waits_on(kernel("__x64_sys_write", "ext4_file_write_iter"), 5) == 5


def test_a_page_fault_in_a_system_call_is_on_what_is_mapped_there() -> None:
    assert waits_on(IN_COPY, 5, {5}) == 5
    assert waits_on(IN_FAULT, 5, {5}) == 5
    assert waits_on(IN_COPY, 5, {6}) == 0
    assert waits_on(kernel("__x64_sys_read", *FAULT, "do_swap_page"), 5, {5}) != 5


def test_a_wait_after_a_page_fault_is_not_on_what_was_mapped_there() -> None:
    assert waits_on(kernel("__x64_sys_write", "pipe_write"), 5, {5}) == 0
    assert waits_on(user(EXE, "main"), 5, {5}) == 5, "without the kernel's functions nothing tells"


def test_in_a_profile() -> None:
    profile = empty()
    swaps = (*user(EXE, "main", "touch"), *kernel(*FAULT, "do_swap_page", "folio_wait_bit_common"))
    Tracee(profile, 1, "app", 1, "app").wait(swaps, "uninterruptible", 9 * SECOND)
    (first,) = profile.samples
    profile.samples = [first._replace(labels=tuple(sorted((*first.labels, (LABEL, 5)))))]
    profile.objects = [WaitObject(5, FILE, "/data")]
    facts = facts_of(profile)
    (total,) = facts.waits_of((1, 1)).values()
    found = facts.on(total, HELD, (1,))
    assert found is not None
    assert (found.what.kind, found.time) == (SWAP, 9 * SECOND)


def on_file(stack: Stack, *, mapped: bool) -> tuple[tuple[str, ...], str]:
    """Frames of a place, and the path of what the wait is on."""
    profile = empty()
    Tracee(profile, 1, "app", 1, "app").wait(stack, "uninterruptible", 9 * SECOND)
    (first,) = profile.samples
    profile.samples = [first._replace(labels=tuple(sorted((*first.labels, (LABEL, 5)))))]
    profile.objects = [WaitObject(5, FILE, "/data", mapped=mapped)]
    facts = facts_of(profile)
    ((place, total),) = facts.waits_of((1, 1)).items()
    found = facts.on(total, HELD, (1,))
    return place.site.frames, found.what.name if found else ""


def test_places_of_page_faults_in_system_calls() -> None:
    copies = (*user(EXE, "main", "save"), *user(LIBC, "write"), *IN_COPY)
    assert on_file(copies, mapped=True) == (("main", "save", "write", "page fault"), "/data")
    assert on_file(copies, mapped=False) == (("main", "save", "write", "page fault"), "")
    writes = (*copies[:3], *kernel("__x64_sys_write", "ext4_file_write_iter"))
    assert on_file(writes, mapped=False) == (("main", "save", "write"), "/data")
