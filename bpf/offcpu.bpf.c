/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Off-CPU time: what a thread waits for between switch-out and switch-in, and how long. sched.bpf.c calls these
 * functions when a wait ends. They are global, so that the verifier checks each once, and not once per path to it. */
#include "maps.bpf.h"
#include "measures.bpf.h"
#include "thread.bpf.h"

char LICENSE[] SEC("license") = "GPL";

struct wait_table {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct origin);
	__type(value, struct wait_sum);
};
struct wait_table waits SEC(".maps");

const volatile u64 min_wait;
const volatile u64 max_wait = ~0ULL;
const volatile u32 state_mask = ~0U; /* bit per enum wait_state */

static __always_inline bool same_key(const struct origin *a, const struct origin *b)
{
	return a->ustack == b->ustack && a->kstack == b->kstack && a->python == b->python && a->tid == b->tid &&
	       a->state == b->state && a->execs == b->execs && a->tgid == b->tgid;
}

/* Moves the thread's running sum into the map of waits. Before 6.2 (d1673304097c), memory behind an argument cannot
 * be the key or the value of a map: both are copied to the stack. */
int offcpu_flush(struct thread *t)
{
	struct origin key;
	struct wait_sum sum;
	struct wait_sum *old;

	if (!t || !t->sum.count)
		return 0;
	key = t->sum_key;
	sum = t->sum;
	old = bpf_map_lookup_elem(&waits, &key);
	if (old) {
		/* Only the thread itself updates its keys, so there is no other writer. */
		if (sum.blocked_min < old->blocked_min)
			old->blocked_min = sum.blocked_min;
		if (sum.blocked_max > old->blocked_max)
			old->blocked_max = sum.blocked_max;
		if (sum.runnable_min < old->runnable_min)
			old->runnable_min = sum.runnable_min;
		if (sum.runnable_max > old->runnable_max)
			old->runnable_max = sum.runnable_max;
		old->count += sum.count;
		old->blocked += sum.blocked;
		old->runnable += sum.runnable;
	} else if (bpf_map_update_elem(&waits, &key, &sum, BPF_NOEXIST) == 0) {
		count(NEW_WAITS);
	} else {
		u32 which = LOST_WAITS;
		u64 *lost = bpf_map_lookup_elem(&counters, &which);

		if (lost)
			*lost += sum.count;
	}
	__builtin_memset(&t->sum, 0, sizeof(t->sum));
	return 0;
}

/* The interval that began at t->out ends now; `waits` is above 1 if some waits were not seen. */
int offcpu_ended(struct thread *t, u64 now, u64 waits)
{
	u64 blocked, runnable;

	if (!t || !t->out)
		return 0;
	if (now - t->out < min_wait || now - t->out > max_wait || !(state_mask & (1U << (t->key.state & 31))))
		return 0;
	blocked = blocked_part(t, now);
	runnable = now - t->out - blocked;
	if (t->late_out == t->out) /* never both 0: see above */
		t->key.ustack = t->late_ustack;
	if (!same_key(&t->key, &t->sum_key)) {
		offcpu_flush(t);
		t->sum_key = t->key;
	}
	add_waits(&t->sum, waits, blocked, runnable);
	return 0;
}
