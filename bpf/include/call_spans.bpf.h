/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls one by one, for a timeline. */
#ifndef STALLSCOPE_CALL_SPANS_BPF_H
#define STALLSCOPE_CALL_SPANS_BPF_H

#include "call_cookie.h"
#include "open_calls.bpf.h"
#include "thread.bpf.h"

/* A call that returned, for a timeline. */
struct call_span {
	u64 begin;
	u64 end;
	u64 ustack; /* where it was called; 0: not known */
	u32 tid;
	u32 function;
	u32 level; /* 0: no other call was open */
	u32 life;
};

/* Read in bulk. A ring buffer of the kernel, since another thread can come to its own probe on the same CPU while one
 * is written. */
struct call_span_ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
};
struct call_span_ring call_spans SEC(".maps");

enum call_span_count {
	LOST_SPANS,
	SHORT_SPANS,
	SPAN_COUNTS,
};

struct call_span_counts {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SPAN_COUNTS);
	__type(key, u32);
	__type(value, u64);
};
struct call_span_counts call_span_counts SEC(".maps");

const volatile bool record_call_spans;
const volatile u64 call_span_over; /* ns; those that do not take longer are only counted. 0: none */

static __always_inline void count_span(enum call_span_count which)
{
	u32 key = which;
	u64 *value = bpf_map_lookup_elem(&call_span_counts, &key);

	if (value)
		__sync_fetch_and_add(value, 1);
}

__weak int add_span(struct thread *t, struct open_call *call, u64 now, u32 level)
{
	struct call_span span = {};

	if (!t || !call)
		return 0;
	span.begin = call->began;
	span.end = now;
	span.ustack = call->ustack;
	span.tid = t->key.tid;
	span.life = t->key.life;
	span.function = call->cookie & COOKIE_FUNCTION;
	span.level = level;
	if (call_span_over && now - call->began <= call_span_over)
		count_span(SHORT_SPANS);
	else if (bpf_ringbuf_output(&call_spans, &span, sizeof(span), BPF_RB_NO_WAKEUP))
		count_span(LOST_SPANS);
	return 0;
}

#endif
