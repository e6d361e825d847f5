/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which calls count, if only slow ones do: that is known when they return. */
#ifndef STALLSCOPE_SLOW_CALLS_BPF_H
#define STALLSCOPE_SLOW_CALLS_BPF_H

#include "call_copies.bpf.h"
#include "call_sums.bpf.h"

/* Calls that were too short to count. */
struct call_fast {
	u64 count;
	u64 total;
};

DEFINE_SUM_TABLES(call_fast, sizeof(struct call_copy_key), sizeof(struct call_fast));

const volatile u64 call_over;	  /* ns; only calls that take longer count. 0: all */
const volatile bool calls_judged; /* whether a call counts is known when it returns, also if `call_over` is 0 */

static __always_inline bool judged(void)
{
	return call_over || calls_judged;
}

static __always_inline bool counts(u64 ns)
{
	return !call_over || ns > call_over;
}

/* The waits of a call that does not count are those of the call around it. */
static __always_inline void pass_waits(struct open_call *outer, const struct open_call *call)
{
	outer->blocked += call->blocked;
	outer->runnable += call->runnable;
	if (call->longest > outer->longest) {
		outer->longest = call->longest;
		outer->longest_ustack = call->longest_ustack;
		outer->longest_kstack = call->longest_kstack;
		outer->longest_state = call->longest_state;
	}
}

/* The innermost call is too short to count: its time is that of the call around it, which may be slow. */
__weak int drop_fast(struct call_stack *stack)
{
	struct open_call *call, *outer;
	u32 last;

	if (!stack)
		return 0;
	last = stack->depth - 1;
	if (last >= CALL_DEPTH)
		return 0;
	stack->depth = last;
	if (!last)
		return 0;
	call = call_at(stack, last);
	outer = call_at(stack, last - 1);
	pass_waits(outer, call);
	return 0;
}

/* Adds up the calls that are too short to count. */
__weak int add_fast(struct thread *t, struct open_call *call, u64 total)
{
	struct call_fast one = { 1, total }, *sum;
	struct call_copy_key key = {};
	void *table;

	if (!t || !call)
		return 0;
	key.tid = t->key.tid;
	key.tgid = t->key.tgid;
	key.life = t->key.life;
	key.function = call->cookie & COOKIE_FUNCTION;
	table = table_of(&call_fast);
	sum = table ? bpf_map_lookup_elem(table, &key) : NULL;
	if (sum) {
		sum->count++;
		sum->total += total;
	} else if (!table || bpf_map_update_elem(table, &key, &one, BPF_NOEXIST)) {
		tally(LOST_FAST_CALLS, 1);
	} else {
		count_new_calls(CALL_KINDS);
	}
	return 0;
}

/* The waits of a call that counts, if that is known at its return, without those of inner ones that counted: all are at the place of the longest. */
__weak int add_slow_waits(struct thread *t, struct open_call *call)
{
	struct call_time waited = {};
	struct origin key = {};

	if (!t || !call || !call->longest)
		return 0;
	waited.blocked = call->blocked - call->slow_blocked;
	waited.runnable = call->runnable - call->slow_runnable;
	key.ustack = call->longest_ustack;
	key.kstack = call->longest_kstack;
	key.state = call->longest_state;
	key.tid = t->key.tid;
	key.tgid = t->key.tgid;
	key.life = t->key.life;
	add_call_time(&key, &waited);
	return 0;
}

/* Remembers the place of the longest wait, of one in which the thread was blocked if there is any. */
__weak int note_wait(struct open_call *call, struct origin *at, struct call_time *what)
{
	u64 weight;

	if (!call || !at || !what)
		return 0;
	weight = what->blocked ? what->blocked | 1ULL << 62 : what->runnable;
	if (weight <= call->longest)
		return 0;
	call->longest = weight;
	call->longest_ustack = at->ustack;
	call->longest_kstack = at->kstack;
	call->longest_state = at->state;
	return 0;
}

#endif
