"""The kind of code in a file, by its name in perf, pprof and /proc/PID/maps."""

from __future__ import annotations

import re

from .samples import Kind

_KERNEL = re.compile(
    r"(?:.*/)?vmlinux(?:-\d[^/]*|\.debug)?"  # in /boot, /usr/lib/debug/boot, /lib/modules/VERSION …
    r"|.*\.ko(?:\.(?:debug|gz|xz|zst))*"
    r"|bpf_(?:prog|trampoline|dispatcher)_[^/]*"
    r"|/proc/kcore|(?:.*/)?kallsyms"
    # [kernel.kallsyms], [guest.kernel.kallsyms.4711], a module as perf prints it: [nf_conntrack].
    r"|\[(?!(?:unknown|vdso\d*|vsyscall|vvar\w*|vectors|sigpage|uprobes|heap|stack|anon|JIT)\b)[^]]+\]\S*",
    re.DOTALL,
)
_JIT = re.compile(r"(?:.*/)?perf-\d+\.map|(?:.*/)?jitted-\d+-\d+\.so|\[JIT\].*", re.DOTALL)
"""Code generated at run time: from /tmp/perf-PID.map, from ``perf inject --jit``, or from neither."""


def kind_of_module(path: str) -> Kind:
    """``kernel``, ``jit`` or ``native``, for a path or a name in brackets that replaces one."""
    path = path.removesuffix(" (deleted)")
    if _KERNEL.fullmatch(path):
        return "kernel"
    return "jit" if _JIT.fullmatch(path) else "native"
