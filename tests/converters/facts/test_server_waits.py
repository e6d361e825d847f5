from __future__ import annotations

import pytest
from stallscope.converters.facts.server_waits import OF_SERVERS, server_of
from stallscope.converters.facts.wait_kinds import HELD
from stallscope.converters.model import Stack
from stallscope.converters.model.wait_objects import FILE, FUSE_SERVER, LABEL, NFS_SERVER, WaitObject
from stallscope.converters.phrases.wait_objects import on
from summary_profiles import EXE, LIBC, SECOND, Tracee, empty, facts_of, kernel, user

RPC = ("nfs4_call_sync_sequence", "rpc_run_task", "rpc_execute", "__rpc_execute", "out_of_line_wait_on_bit")
"""Calls of nfs4_proc_getattr() and others: fs/nfs/nfs4proc.c, net/sunrpc/clnt.c, net/sunrpc/sched.c."""
OPENS = ("__x64_sys_openat", "do_filp_open", "path_openat")


def kind(stack: Stack) -> str:
    found = server_of(stack)
    return OF_SERVERS[found].kind if found else ""


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ((*OPENS, "nfs4_file_open", *RPC, "rpc_wait_bit_killable"), NFS_SERVER),
        (("__x64_sys_newstat", "nfs_getattr", *RPC, "__wait_on_bit", "rpc_wait_bit_killable"), NFS_SERVER),
        (("__x64_sys_newstat", "nfs_getattr", "nfs_clear_invalid_mapping", "nfs_wait_bit_killable"), NFS_SERVER),
        (("__x64_sys_fsync", "nfs_file_fsync", "nfs_wb_all", "nfs_wait_on_request"), NFS_SERVER),
        ((*OPENS, "nfs4_do_open", "nfs4_handle_exception", "nfs4_delay_killable", "schedule_timeout"), NFS_SERVER),
        ((*OPENS, "fuse_lookup", "__fuse_simple_request", "request_wait_answer"), FUSE_SERVER),
        (("__x64_sys_read", "fuse_get_req"), FUSE_SERVER),
        ((*OPENS, "fuse_open", "invalidate_inode_pages2_range", "__folio_lock", "io_schedule"), FILE),
        (("do_sys_ftruncate", "fuse_setattr", "truncate_pagecache", "__folio_lock", "folio_wait_bit_common"), FILE),
        # What the kernel itself does in these file systems:
        (("__x64_sys_read", "nfs_file_read", "nfs_start_io_read", "rwsem_down_read_slowpath"), ""),
        (("__x64_sys_read", "fuse_file_read_iter", "inode_lock", "rwsem_down_write_slowpath"), ""),
        ((*OPENS, "fuse_open", "inode_lock", "rwsem_down_write_slowpath"), ""),
        ((*OPENS, "ext4_file_open", "invalidate_inode_pages2_range", "__folio_lock"), ""),
        (("fuse_dev_do_read", "fuse_copy_do", "exc_page_fault", "filemap_fault", "__folio_lock"), ""),  # its own file
        (("__x64_sys_read", "fuse_dev_do_read"), ""),  # a server waits for requests
        (("ret_from_fork", "rpc_async_schedule", "worker_thread"), ""),
        ((), ""),
    ],
)
def test_functions_of_the_kernel(names: tuple[str, ...], expected: str) -> None:
    assert kind(kernel(*names)) == expected


def test_a_program_that_calls_a_function_like_the_kernel() -> None:
    assert kind((*user(EXE, "main", "request_wait_answer"), *kernel("__x64_sys_read", "pipe_read"))) == ""
    assert kind(user(EXE, "request_wait_answer")) == ""


@pytest.mark.parametrize(("number", "expected"), [(0, FUSE_SERVER), (5, FILE)])
def test_the_file_is_told_if_it_is_known(number: int, expected: str) -> None:
    profile = empty()
    stack = (*user(EXE, "main"), *user(LIBC, "read"), *kernel("__x64_sys_read", "fuse_get_req", "request_wait_answer"))
    Tracee(profile, 1, "app", 1, "app").wait(stack, "uninterruptible", 9 * SECOND)
    (first,) = profile.samples
    if number:
        profile.samples = [first._replace(labels=tuple(sorted((*first.labels, (LABEL, number)))))]
    profile.objects = [WaitObject(5, FILE, "/mnt/data", "fuse.sshfs")]
    facts = facts_of(profile)
    (total,) = facts.waits_of((1, 1)).values()
    found = facts.on(total, HELD, (1,))
    assert found and found.what.kind == expected


def test_who_opens_a_file_of_which_a_page_is_being_read_waits_for_the_same_server() -> None:
    profile = empty()
    call = (*OPENS, "fuse_open", "invalidate_inode_pages2_range", "__folio_lock")
    stack = (*user(EXE, "main"), *user(LIBC, "open"), *kernel(*call))
    Tracee(profile, 1, "app", 1, "app").wait(stack, "uninterruptible", 9 * SECOND)
    facts = facts_of(profile)
    (total,) = facts.waits_of((1, 1)).values()
    assert on(facts.on(total, HELD, (1,))) == " of a file on FUSE"
