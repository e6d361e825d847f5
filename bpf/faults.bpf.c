/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The address of each page fault of a traced thread, in user code or in a system call: if it has to wait there,
 * descriptors.bpf.h asks what is mapped at it. The kernel keeps the address nowhere else. */
#include "maps.bpf.h"
#include "thread.bpf.h"

char LICENSE[] SEC("license") = "GPL";

SEC("tp_btf/page_fault_user")
int page_fault(u64 *ctx)
{
	struct thread *t;

	if (is_shed(SHED_FAULTS))
		return 0;
	t = find_thread(bpf_get_current_task_btf(), true);
	if (t)
		t->fault = ctx[0];
	return 0;
}

/* A fault of the kernel on memory that the program has passed to it. Its own memory is above all of a program's: at
 * negative addresses (Documentation/arch/x86/x86_64/mm.rst). */
SEC("tp_btf/page_fault_kernel")
int page_fault_in_kernel(u64 *ctx)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct pt_regs *regs = (void *)ctx[1];
	struct thread *t;

	/* Where faults are disabled, nobody waits: the kernel gives up, as in bpf_probe_read_user() of our own stack walks. */
	if ((s64)ctx[0] < 0 || !regs || current->pagefault_disabled || is_shed(SHED_FAULTS))
		return 0;
	t = find_thread(current, true);
	if (t) {
		t->inner_fault = ctx[0];
		t->inner_regs = (u64)regs;
		t->inner_ip = regs->ip;
	}
	return 0;
}
