/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A measure for test_new_measure.py: who calls sched_yield(). It has a program, a map and a knob of its own, takes part in
 * the scope and in the stacks, and links with the others without a change to any. */
#include "kernel_stack.bpf.h"
#include "thread.bpf.h"
#include "user_stack.bpf.h"

char LICENSE[] SEC("license") = "GPL";

const volatile u64 yield_number;

struct yield_table {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct origin);
	__type(value, u64);
};
struct yield_table yields SEC(".maps");

static __always_inline int on_enter(struct task_struct *task, u64 number, bool trusted)
{
	struct origin key = { .state = RUNNING };
	struct stack_record *record;
	u32 slot = CONTEXT_SYSCALL;
	u64 one = 1, *sum;
	struct thread *t;
	u8 end;

	if (number != yield_number || !running())
		return 0;
	t = find_thread(task, trusted);
	record = bpf_map_lookup_elem(&stack_scratch, &slot);
	if (!t || !record)
		return 0;
	key.tid = t->key.tid;
	key.tgid = t->key.tgid;
	key.life = t->key.life;
	if (user_stacks)
		key.ustack = user_stack(CONTEXT_SYSCALL, task, key.tgid, true, record, &end);
	sum = bpf_map_lookup_elem(&yields, &key);
	if (sum)
		++*sum;
	else
		bpf_map_update_elem(&yields, &key, &one, BPF_NOEXIST);
	return 0;
}

SEC("tp_btf/sys_enter")
int yield_enter(u64 *ctx)
{
	return on_enter(bpf_get_current_task_btf(), ctx[1], true);
}

SEC("raw_tp/sys_enter")
int yield_enter_raw(u64 *ctx)
{
	return on_enter((void *)bpf_get_current_task(), ctx[1], false);
}
