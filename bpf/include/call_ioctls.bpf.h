/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The ioctls in calls, and in the calls that these made. */
#ifndef STALLSCOPE_CALL_IOCTLS_BPF_H
#define STALLSCOPE_CALL_IOCTLS_BPF_H

#include "call_sums.bpf.h"
#include "ioctl.bpf.h"

/* The ioctls in a function's calls, and in the calls that these made. */
struct call_ioctl_key {
	u32 tid;
	u32 tgid;
	u32 life;
	u32 function;
	u32 number; /* of the target: see struct ioctl_call */
	u32 pad;
};

struct call_ioctl {
	u64 count;
	u64 total;
	u64 blocked;
	u64 runnable;
};

DEFINE_SUM_TABLES(call_ioctls, sizeof(struct call_ioctl_key), sizeof(struct call_ioctl));

/* Adds an ioctl to the call in this place of the thread's stack. */
__weak int add_call_ioctl(struct call_stack *stack, u32 at, struct origin *of, struct call_ioctl *what)
{
	struct call_ioctl added, *sum;
	struct call_ioctl_key key = {};
	void *table;

	if (!stack || !of || !what)
		return 0;
	added = *what;
	key.tid = of->tid;
	key.tgid = of->tgid;
	key.life = of->life;
	key.function = call_at(stack, at)->cookie & COOKIE_FUNCTION;
	key.number = of->state >> NUMBER_SHIFT;
	table = table_of(&call_ioctls);
	sum = table ? bpf_map_lookup_elem(table, &key) : NULL;
	if (sum) {
		sum->count += added.count;
		sum->total += added.total;
		sum->blocked += added.blocked;
		sum->runnable += added.runnable;
	} else if (!table || bpf_map_update_elem(table, &key, &added, BPF_NOEXIST)) {
		tally(LOST_CALL_IOCTLS, 1);
	} else {
		count_new_calls(CALL_KINDS);
	}
	return 0;
}

/* An ioctl returns: its time on a core is counted here, and no longer for the call that the thread is in. That of its
 * waits was when they ended. */
int calls_ioctl(struct origin *of, u64 began, u64 now)
{
	struct call_time done = {};
	struct call_ioctl sum = { .count = 1 };
	struct call_stack *stack;
	struct open_call *call;
	struct origin key;
	u64 on_cpu, most;
	u32 tid, last, i;

	if (!of)
		return 0;
	key = *of;
	tid = key.tid;
	stack = bpf_map_lookup_elem(&call_stacks, &tid);
	if (!stack || stack->life != key.life)
		return 0;
	last = stack->depth - 1;
	if (last >= CALL_DEPTH)
		return 0;
	call = call_at(stack, last);
	if (began < call->began)
		return 0;
	sum.total = now - began;
	if (stack->ioctl == began) {
		sum.blocked = stack->ioctl_blocked;
		sum.runnable = stack->ioctl_runnable;
	}
	on_cpu = sum.total - sum.blocked - sum.runnable;
	/* A wait in the middle of ioctl_return() is the call's, and not the ioctl's. */
	most = now - call->began - call->blocked - call->runnable - call->inner_on_cpu;
	if (on_cpu > most)
		on_cpu = (s64)most > 0 ? most : 0;
	call->inner_on_cpu += on_cpu;
	done.on_cpu = on_cpu;
	add_call_time(&key, &done);
	for (i = 0; i < CALL_DEPTH && i <= last; i++)
		add_call_ioctl(stack, i, &key, &sum);
	return 0;
}

#endif
