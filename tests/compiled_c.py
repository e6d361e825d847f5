"""Runs C of expressions on this machine: what the kernel would do is done here."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from stallscope.tracers.bcc_compiler.place import HEADERS
from stallscope.tracers.expressions import source as source_module
from stallscope.tracers.expressions.source import MapNumber, Resume

MASK = (1 << 64) - 1
PRELUDE = """
#include <linux/types.h>
int printf(const char *, ...);
void *memcpy(void *, const void *, size_t);
size_t strlen(const char *);
enum { BPF_ANY, BPF_NOEXIST };
#define bpf_pseudo_fd(a, b) 0
#define bpf_map_lookup_elem(m, k) ((void *)0)
#define bpf_map_update_elem(m, k, v, f) 0
#define bpf_map_delete_elem(m, k) 0
#define bpf_tail_call_(m, c, i)
#define bpf_ktime_get_ns() 0
#define bpf_ringbuf_reserve(m, s, f) ((void *)0)
static u8 text[] = "hello";
static u64 memory[] = {1, 2, 0xffffffffffffff85ULL, 4};
static int bpf_probe_read_user(void *to, u32 size, const void *from)
{
	if ((u64)from < 4096)
		return -14;
	memcpy(to, from, size);
	return 0;
}
static long bpf_probe_read_user_str(void *to, u32 size, const void *from)
{
	size_t length = (u64)from < 4096 ? 0 : strlen(from) + 1;

	if (!length)
		return -14;
	if (length > size)
		length = size;
	memcpy(to, from, length);
	((u8 *)to)[length - 1] = 0;
	return length;
}
static int bpf_probe_read_kernel(void *to, u32 size, const void *from)
{
	return bpf_probe_read_user(to, size, from);
}
static long bpf_probe_read_kernel_str(void *to, u32 size, const void *from)
{
	return bpf_probe_read_user_str(to, size, from);
}
static int bpf_get_current_comm(void *to, u32 size)
{
	memcpy(to, "a thread\\0\\0\\0\\0\\0\\0\\0", size);
	return 0;
}
"""


def run_c(expressions: Sequence[str], context: Mapping[str, int] | bytes, folder: Path) -> list[tuple[int, int]]:
    """The 64 bits of each expression, and whether it faulted. ``context``: registers, or a tracepoint's record. In r9
    is the address of `memory`, in bp that of `text`."""
    gcc = shutil.which("gcc")
    assert gcc
    lines = [f'{{ u64 fault = 0; u64 v = {each}; printf("%llu %llu\\n", v, fault); }}' for each in expressions]
    numbers = {**{f"MAP_{each.name}": each.value for each in MapNumber}, "TEXT_BYTES": 64, "SAVED_NUMBERS": 1}
    numbers |= {"SAVED_TEXTS": 1, "PRINTS_PER_SECOND": 1, **{f"RESUME_{each.name}": each.value for each in Resume}}
    numbers |= {f"LOST_{each.name}": each.value for each in source_module.Loss}
    helpers = Path(source_module.__file__).with_name("helpers.h").read_text()
    if isinstance(context, bytes):
        data = ", ".join(map(str, context))
        begin = f"static u8 record[] = {{ {data} }}; struct pt_regs *ctx = (void *)record;"
    else:
        values = "".join(f".{name} = {value & MASK:#x}ULL, " for name, value in context.items())
        begin = f"struct pt_regs regs = {{ {values} }}, *ctx = &regs; regs.r9 = (u64)memory; regs.bp = (u64)text;"
    body = "\n".join(lines)
    (folder / "x.c").write_text(
        "".join(f"#define {name} {value}\n" for name, value in numbers.items())
        + PRELUDE
        + helpers
        + f"int main(void) {{ {begin}\nu64 ids = 12ULL << 32 | 34;\n{body}\nreturn 0; }}\n"
    )
    program = folder / "x"
    include = HEADERS / "include"
    flags = ["-w", "-O1", "-fno-builtin", "-fwrapv", f"-I{include}"]
    subprocess.run([gcc, *flags, "-o", program, folder / "x.c"], check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    return [(int(value), int(fault)) for value, fault in map(str.split, done.stdout.splitlines())]
