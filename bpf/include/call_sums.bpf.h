/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is told of calls: their times by origin, sums and histograms by function, errors, and losses. User space takes the
 * tables out of the kernel meanwhile. */
#ifndef STALLSCOPE_CALL_SUMS_BPF_H
#define STALLSCOPE_CALL_SUMS_BPF_H

#include "call_buckets.bpf.h"
#include "call_cookie.h"
#include "measures.bpf.h"
#include "open_calls.bpf.h"
#include "thread.bpf.h"

/* What was done where: time is counted once, for the innermost call. */
struct call_time {
	u64 calls;
	u64 on_cpu;
	u64 blocked;
	u64 runnable;
};

struct call_key {
	u32 tid;
	u32 tgid;
	u32 life;
	u32 function;
};

struct call_sum {
	u64 count;
	u64 total;
	u64 self; /* without the calls that it made */
	u64 blocked;
	u64 runnable;
	u64 min;
	u64 max;
	u64 left;	/* ended without a return; not in `count` */
	u64 open;	/* not ended when the thread was: not in `count` */
	u64 open_time;	/* … and for how long */
	u64 open_inner; /* … and for how long in calls that they made */
	u32 latencies[CALL_BUCKETS];
};

struct call_failure {
	u32 tid;
	u32 tgid;
	u32 life;
	u32 function;
	s32 result;
	u32 pad;
};

/* Tables that are nearly full are taken out. All but those of times have this many times fewer entries. */
#define CALL_KINDS 8

DEFINE_SUM_TABLES(call_times, sizeof(struct origin), sizeof(struct call_time));
DEFINE_SUM_TABLES(call_sums, sizeof(struct call_key), sizeof(struct call_sum));
DEFINE_SUM_TABLES(call_failures, sizeof(struct call_failure), sizeof(u64));

/* Never written: initial values, too large for the BPF stack. */
struct call_blank {
	struct call_stack stack;
	struct call_sum sum;
};

struct call_blanks {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct call_blank);
};
struct call_blanks call_blanks SEC(".maps");

enum call_loss {
	LOST_CALLS,	  /* no room: not counted at all */
	LOST_CALL_TIMES,  /* no room: the time of calls is that of no stack */
	LOST_CALL_ERRORS, /* no room: the error is not told */
	LOST_CALL_STACKS, /* the CPU's memory was in use: it is not known where the call came from */
	LOST_CALL_IOCTLS, /* no room: the ioctl is not told of the call */
	LOST_CALL_COPIES, /* no room: the call is not told of as a copy */
	LOST_CALL_DEPTHS, /* CALL_DEPTH calls were open: not counted at all, the time is that of the innermost of these */
	/* No losses: of threads that have ended. */
	CALL_PROBES,	  /* how often the programs ran */
	CALL_PROBES_TIME, /* … and for how long */
	CALL_STACKS_CUT, /* stacks of waits and ioctls that begin at the call, because their walks ended inside of it */
	LOST_FAST_CALLS, /* no room: a call that was too short to count is not told of */
	CALL_LOSSES,
};

struct call_loss_array {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, CALL_LOSSES);
	__type(key, u32);
	__type(value, u64);
};
struct call_loss_array call_losses SEC(".maps");

static __always_inline void tally(enum call_loss which, u64 number)
{
	u32 key = which;
	u64 *value = bpf_map_lookup_elem(&call_losses, &key);

	if (value)
		__sync_fetch_and_add(value, number);
}

static __always_inline void count_new_calls(u32 entries)
{
	u32 key = NEW_CALLS;
	u64 *value = bpf_map_lookup_elem(&counters, &key);

	if (value)
		*value += entries;
}

static __always_inline struct call_blank *blank(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&call_blanks, &zero);
}

static __always_inline void *table_of(void *tables)
{
	u32 slot = 0;

	if (intervals) /* to ask for the time costs as much as a lookup */
		slot = interval_at(bpf_ktime_get_ns()) & (SUM_TABLES - 1);
	return bpf_map_lookup_elem(tables, &slot);
}

/* Adds to what was done at an origin. Only the thread itself, or its switch, does so. */
__weak int add_call_time(struct origin *at, struct call_time *what)
{
	struct call_time *sum = NULL, copy, *added = &copy;
	struct origin own, *key = &own;
	void *table;

	if (!at || !what)
		return 0;
	/* On 6.1, a map takes no pointers that were passed to a global function. */
	own = *at;
	copy = *what;
	table = table_of(&call_times);
	if (!table)
		return 0;
	sum = bpf_map_lookup_elem(table, key);
	if (!sum && bpf_map_update_elem(table, key, added, BPF_NOEXIST) == 0) {
		count_new_calls(1);
		return 0;
	}
	if (!sum)
		sum = bpf_map_lookup_elem(table, key);
	if (!sum) {
		tally(LOST_CALL_TIMES, added->calls + !added->calls);
		return 0;
	}
	sum->calls += added->calls;
	sum->on_cpu += added->on_cpu;
	sum->blocked += added->blocked;
	sum->runnable += added->runnable;
	return 0;
}

static __always_inline struct call_sum *sum_of(const struct call_key *key)
{
	void *table = table_of(&call_sums);
	struct call_blank *none;
	struct call_sum *sum;

	if (!table)
		return NULL;
	sum = bpf_map_lookup_elem(table, key);
	if (!sum) {
		none = blank();
		if (!none)
			return NULL;
		if (bpf_map_update_elem(table, key, &none->sum, BPF_NOEXIST) == 0)
			count_new_calls(CALL_KINDS);
		sum = bpf_map_lookup_elem(table, key);
	}
	return sum;
}

static __always_inline struct call_key key_of(const struct thread *t, const struct open_call *call)
{
	struct call_key key = { t->key.tid, t->key.tgid, t->key.life, call->cookie & COOKIE_FUNCTION };

	return key;
}

__weak int add_call_failure(struct thread *t, u32 function, s32 result)
{
	struct call_failure failure = {};
	u64 one = 1, *number;
	void *table;

	if (!t)
		return 0;
	failure.tid = t->key.tid;
	failure.tgid = t->key.tgid;
	failure.life = t->key.life;
	failure.function = function;
	failure.result = result;
	table = table_of(&call_failures);
	if (!table)
		return 0;
	number = bpf_map_lookup_elem(table, &failure);
	if (!number && bpf_map_update_elem(table, &failure, &one, BPF_NOEXIST) == 0) {
		count_new_calls(CALL_KINDS);
		return 0;
	}
	if (!number)
		number = bpf_map_lookup_elem(table, &failure);
	if (number)
		__sync_fetch_and_add(number, 1);
	else
		tally(LOST_CALL_ERRORS, 1);
	return 0;
}

static __always_inline void add_call(struct thread *t, const struct open_call *call, u64 total)
{
	struct call_key key = key_of(t, call);
	struct call_sum *sum = sum_of(&key);
	u32 bucket;

	if (!sum) {
		tally(LOST_CALLS, 1);
		return;
	}
	if (!sum->count || total < sum->min)
		sum->min = total;
	if (total > sum->max)
		sum->max = total;
	sum->count++;
	sum->total += total;
	sum->self += total - call->inner;
	sum->blocked += call->blocked;
	sum->runnable += call->runnable;
	bucket = call_bucket(total);
	if (bucket < CALL_BUCKETS)
		sum->latencies[bucket]++;
}

#endif
