/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Off-CPU time: what a thread waits for between switch-out and switch-in, and how long. sched.bpf.c calls these
 * functions when a wait ends. They are global, so that the verifier checks each once, and not once per path to it. */
#include "maps.bpf.h"
#include "measures.bpf.h"
#include "thread.bpf.h"

char LICENSE[] SEC("license") = "GPL";

DEFINE_SUM_TABLES(waits, sizeof(struct origin), sizeof(struct wait_sum));

/* Waits that found no room in a table: by table and state. */
struct lost_waits {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SUM_TABLES *WAIT_STATES);
	__type(key, u32);
	__type(value, struct wait_sum);
};
struct lost_waits lost_waits SEC(".maps");

static __always_inline bool same_key(const struct origin *a, const struct origin *b)
{
	return a->ustack == b->ustack && a->kstack == b->kstack && a->object == b->object && a->tid == b->tid &&
	       a->state == b->state && a->life == b->life && a->tgid == b->tgid;
}

static __always_inline void add_sum(struct wait_sum *to, const struct wait_sum *sum)
{
	if (!to->count || sum->blocked_min < to->blocked_min)
		to->blocked_min = sum->blocked_min;
	if (sum->blocked_max > to->blocked_max)
		to->blocked_max = sum->blocked_max;
	if (!to->count || sum->runnable_min < to->runnable_min)
		to->runnable_min = sum->runnable_min;
	if (sum->runnable_max > to->runnable_max)
		to->runnable_max = sum->runnable_max;
	to->count += sum->count;
	to->blocked += sum->blocked;
	to->runnable += sum->runnable;
}

static __always_inline void lose(u32 slot, u32 state, const struct wait_sum *sum)
{
	u32 which = LOST_WAITS, place = slot * WAIT_STATES + (state & (WAIT_STATES - 1));
	struct wait_sum *time = bpf_map_lookup_elem(&lost_waits, &place);
	u64 *lost = bpf_map_lookup_elem(&counters, &which);

	if (time)
		add_sum(time, sum);
	if (lost)
		*lost += sum->count;
}

/* Moves the thread's running sum into the table of waits. Before 6.2 (d1673304097c), memory behind an argument cannot
 * be the key or the value of a map: both are copied to the stack. */
int offcpu_flush(struct thread *t)
{
	struct origin key;
	struct wait_sum sum;
	struct wait_sum *old;
	void *table;
	u32 slot;

	if (!t || !t->sum.count)
		return 0;
	slot = t->cut & (SUM_TABLES - 1);
	key = t->sum_key;
	sum = t->sum;
	__builtin_memset(&t->sum, 0, sizeof(t->sum));
	table = bpf_map_lookup_elem(&waits, &slot);
	old = table ? bpf_map_lookup_elem(table, &key) : NULL;
	if (old)
		/* Only the thread itself updates its keys, so there is no other writer. */
		add_sum(old, &sum);
	else if (table && bpf_map_update_elem(table, &key, &sum, BPF_NOEXIST) == 0)
		count(NEW_WAITS);
	else
		lose(slot, key.state, &sum);
	return 0;
}

/* The interval that began at t->out ends now; `waits` is above 1 if some waits were not seen. */
int offcpu_ended(struct thread *t, u64 now, u64 waits)
{
	u64 blocked, runnable;

	if (!t || !wait_counts(t, now))
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
