from __future__ import annotations

import pytest
from stallscope.converters.model.kinds import kind_of_module


@pytest.mark.parametrize(
    ("kind", "paths"),
    [
        (
            "kernel",
            "[kernel.kallsyms] [kernel.vmlinux] [kernel.kallsyms]_text [guest.kernel.kallsyms] "
            "[guest.kernel.kallsyms.4711] "
            "[nf_conntrack] [bpf] vmlinux /root/.debug/[kernel.kallsyms]/1a/kallsyms "
            "/boot/vmlinux-6.1.0-13-amd64 /usr/lib/debug/boot/vmlinux-5.4.14 /proc/kcore "
            "/usr/lib/debug/lib/modules/6.1.0/vmlinux /usr/lib/debug/vmlinux.debug "
            "/lib/modules/6.1.0/kernel/fs/ext4/ext4.ko "
            "/lib/modules/6.1.0/xfs.ko.xz nvidia.ko.zst e1000.ko.gz /usr/lib/debug/lib/modules/6.1.0/kernel/a.ko.debug "
            "bpf_prog_2b956549c660136a_uni_l4lb bpf_trampoline_6442 [__builtin__kprobes]",
        ),
        ("jit", "/tmp/perf-4711.map perf-1.map /tmp/jitted-31714-4145672264.so jitted-1-2.so [JIT]"),
        (
            "native",
            "[unknown] [vdso] [vdso32] [vsyscall] [vvar_vclock] [heap] [stack] [stack:4711] [anon] [anon:v8] "
            "[anon:.bss] [uprobes] /usr/bin/vmlinux-to-elf /opt/vmlinux-tools/bin/x /bin/cmd.ko.py /tmp/perf-x.map "
            "/usr/lib/libjitted-1-2.so.1 inlined "
            "[] [ /home/a/bpf_prog_1/x /usr/lib/libc.so.6",
        ),
    ],
)
def test_whose_code_it_is(kind: str, paths: str) -> None:
    assert {path: kind_of_module(path) for path in paths.split()} == dict.fromkeys(paths.split(), kind)


def test_names_with_spaces() -> None:
    assert kind_of_module("[JIT] tid 4711") == "jit"
    assert kind_of_module("/tmp/perf-4711.map (deleted)") == "jit"
    assert kind_of_module("/lib/modules/6.1.0/x.ko (deleted)") == "kernel"
    assert kind_of_module("") == "native"
