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

/* The same but for the state. */
static __always_inline bool same_place(const struct origin *a, const struct origin *b)
{
	return a->ustack == b->ustack && a->kstack == b->kstack && a->object == b->object && a->tid == b->tid &&
	       a->life == b->life && a->tgid == b->tgid;
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

	if (!t || !(t->sum.count || t->sum.blocked || t->sum.runnable))
		return 0;
	slot = t->cut & (SUM_TABLES - 1);
	key = t->sum_key;
	sum = t->sum;
	if (!sum.count) /* only parts of waits that end in a later slice */
		sum.blocked_min = sum.runnable_min = ~0ULL;
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

/* Parts of a wait that are in slices of their own; a longer one has its rest in the last of them. */
#define MOST_PARTS 32

/* The next times are added up for this state: see SLICE_SHIFT. */
static __always_inline void add_up_in(struct thread *t, u32 state)
{
	if (t->sum_key.state == state && same_place(&t->key, &t->sum_key))
		return;
	offcpu_flush(t);
	t->sum_key = t->key;
	t->sum_key.state = state;
}

/* Adds up what is before the slice in which the wait ends, for each slice by itself; returns when that one begins, or
 * the wait. `woken`: when it was no longer blocked. */
static __always_inline u64 add_earlier_parts(struct thread *t, u64 woken, u64 now, u32 *state)
{
	u32 doubled = *(volatile u32 *)&slice_doubled & 15, i;
	u64 at = t->out, length = slice_ns << doubled, end, slice;

	*state |= doubled << SLICE_DOUBLED_SHIFT;
	slice = at > run.began ? (at - run.began) / length : 0;
	*state |= (u32)slice << SLICE_SHIFT;
	end = run.began + (slice + 1) * length;
	for (i = 0; i < MOST_PARTS && end < now; i++) {
		add_up_in(t, *state);
		if (woken > at)
			t->sum.blocked += (woken < end ? woken : end) - at;
		if (woken < end)
			t->sum.runnable += end - (woken > at ? woken : at);
		*state += 1 << SLICE_SHIFT;
		at = end;
		end += length;
	}
	return at;
}

/* The interval that began at t->out ends now; `waits` is above 1 if some waits were not seen. Each slice gets the time
 * that is within it; the wait itself counts in the last one. */
int offcpu_ended(struct thread *t, u64 now, u64 waits)
{
	u64 at, woken;
	u32 state;

	if (!t || !wait_counts(t, now))
		return 0;
	at = t->out;
	woken = at + blocked_part(t, now);
	if (t->late_out == at) /* never both 0: see wait_counts() */
		t->key.ustack = t->late_ustack;
	state = t->key.state;
	if (slice_ns)
		at = add_earlier_parts(t, woken, now, &state);
	add_up_in(t, state);
	add_waits(&t->sum, waits, woken - t->out, now - woken);
	if (at > t->out) {
		t->sum.blocked -= (at < woken ? at : woken) - t->out;
		t->sum.runnable -= at > woken ? at - woken : 0;
	}
	return 0;
}
