/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The address of each page fault of a traced thread in user code: if it has to wait there, descriptors.bpf.h asks what is
 * mapped at it. The kernel keeps the address nowhere else. */
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
