from __future__ import annotations

import errno

import pytest
from stallscope.tracers.base import descriptors
from stallscope.tracers.kernel import shapes
from stallscope.tracers.kernel.libbpf import BpfError
from stallscope.tracers.kernel.shapes import BTF_SHAPES, Shape, kernel_helpers, refusal

LOG = [
    "libbpf: prog 'sched_switch': BPF program load failed: Permission denied",
    "libbpf: prog 'sched_switch': -- BEGIN PROG LOAD LOG --\n"
    "0: R1=ctx() R10=fp0\n; int sched_switch(u64 *ctx) @ sched.bpf.c:4\n12: (61) r0 = *(u32 *)(r8 +0)\n"
    "from 9 to 13: R0=scalar() R10=fp0\nR8 invalid mem access 'scalar'\n"
    "processed 13 insns (limit 1000000) max_states_per_insn 0\n-- END PROG LOAD LOG --",
    "libbpf: prog 'sched_switch': failed to load: -13",
    "libbpf: failed to load object 'stallscope'",
]
ALL = frozenset(name for shape in BTF_SHAPES for name in shape.needs)


def failures(number: int = errno.EINVAL, log: list[str] = LOG) -> list[tuple[Shape, BpfError]]:
    return [(shape, BpfError(f"attempt {i}", number, log)) for i, shape in enumerate(BTF_SHAPES)]


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        (LOG, "R8 invalid mem access 'scalar'"),
        (["libbpf: map 'waits': failed to create: Cannot allocate memory(-12)"],
         "map 'waits': failed to create: Cannot allocate memory(-12)"),
        (["\n", ""], "no reason given"),
        ([], "no reason given"),
    ],
)  # fmt: skip
def test_reason(log: list[str], reason: str) -> None:
    assert shapes.reason(log) == reason


@pytest.mark.parametrize(
    ("helpers", "attempt"),
    [
        (ALL, 0),
        (ALL - {"copy_from_user_task"}, 1),
        (ALL - {"loop", "copy_from_user_task", "task_pt_regs"}, 2),
        (frozenset(), 0),  # a kernel that does not say
    ],
)
def test_failure_of_the_shape_that_should_have_worked_is_told(helpers: frozenset[str], attempt: int) -> None:
    told = refusal(failures(), helpers, release="6.1", root=True)
    where = f"(sched_switch, {BTF_SHAPES[attempt].name}: R8 invalid mem access 'scalar')"
    assert told.cause == f"attempt {attempt}: Invalid argument {where}"
    assert "report what the verifier says" in told.remedy
    assert "R8 invalid mem access" in told.details


def test_kernel_without_task_storage_is_told_what_is_needed_and_what_works() -> None:
    told = refusal(failures(), frozenset({"map_lookup_elem"}), release="5.10.0-32-amd64", root=True)
    assert told.cause == (
        "this kernel (5.10.0-32-amd64) is too old for the probes: it lacks bpf_task_storage_get(); "
        "they need Linux 5.13 or newer"
    )
    assert told.remedy == shapes.WITHOUT_BPF
    assert not told.details


@pytest.mark.parametrize(
    ("number", "root", "start"),
    [
        (errno.EPERM, False, "run as root"),
        (errno.EACCES, False, "run as root"),
        (errno.EACCES, True, "run it again with -v"),
        (errno.EINVAL, False, "run it again with -v"),
    ],
)
def test_only_who_is_not_root_is_told_to_be(number: int, root: bool, start: str) -> None:
    assert refusal(failures(number), ALL, release="6.1", root=root).remedy.startswith(start)


def test_what_is_no_refusal_by_the_verifier_leads_to_the_doctor() -> None:
    told = refusal(failures(errno.ENOMEM, ["libbpf: map 'waits': no memory"]), ALL, release="6.1", root=True)
    assert told.cause.endswith(f"({BTF_SHAPES[0].name}: map 'waits': no memory)")
    assert told.remedy.startswith("`trace-doctor` says what this kernel lacks; without BPF:")


def test_long_log_is_cut_to_its_end() -> None:
    log = [*LOG[:1], "\n".join(f"{i}: (61) r0 = 1" for i in range(1000)), "the verifier's last word"]
    details = refusal(failures(log=log), ALL, release="6.1", root=True).details.splitlines()
    assert len(details) == 60
    assert details[-1] == "the verifier's last word"


def test_helpers_of_the_running_kernel() -> None:
    helpers = kernel_helpers()
    assert {"map_lookup_elem", "ktime_get_ns"} <= helpers
    assert not any(name.startswith("BPF_FUNC_") for name in helpers)


def test_remedies_for_too_few_files_and_for_a_wrong_btf_file() -> None:
    told = refusal(failures(errno.EMFILE, ["libbpf: map 'waits': x"]), ALL, release="6.1", root=True)
    assert told.cause == f"{descriptors.limit()} files are open, and no more may be"
    assert "`ulimit -n 65536`" in told.remedy
    told = refusal(failures(), frozenset(), release="6.1.0-50", root=True, own_btf=True)
    assert told.remedy == "give --btf the BTF file of the running kernel (6.1.0-50)"
