/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls that are asked about: `asked_…` judges the scope, a program that was compiled for the trace answers, and
 * `resumed_…` times the call. */
#ifndef STALLSCOPE_ASKED_CALLS_BPF_H
#define STALLSCOPE_ASKED_CALLS_BPF_H

#include "timed_calls.bpf.h"

/* Two for each kind of function: for the entry, and for the return. Mirrored in
 * tracers/engines/ebpf/measures/answers.py. */
struct question_array {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 512);
	__type(key, u32);
	__type(value, u32);
};
struct question_array call_questions SEC(".maps");

/* 1: the return is not of interest. */
static __always_inline int ask_call(struct call_context *ctx, struct task_struct *task, bool trusted)
{
	if (!running() || !find_thread(task, trusted))
		return 1;
	bpf_tail_call(ctx, &call_questions, COOKIE_QUESTIONS(bpf_get_attach_cookie(ctx)) * 2);
	tally(LOST_CALLS, 1);
	return 1;
}

static __always_inline void ask_return(struct call_context *ctx, struct task_struct *task, bool trusted)
{
	u64 cookie = bpf_get_attach_cookie(ctx);
	struct call_stack *stack;
	struct thread *t;
	u32 tid, at;

	t = running() ? find_thread(task, trusted) : NULL;
	if (!t)
		return;
	tid = t->key.tid;
	stack = bpf_map_lookup_elem(&call_stacks, &tid);
	if (!stack || stack->life != t->key.life)
		return;
	at = find_call(stack, ctx->sp - sizeof(u64), cookie);
	if (at >= CALL_DEPTH) /* it began before the trace, or does not count */
		return;
	/* The call ends now for the questions and for the table. What the thread waits from here on is not the call's. */
	works(stack, 1);
	stack->returned = bpf_ktime_get_ns();
	stack->duration = stack->returned - call_at(stack, at)->began;
	bpf_tail_call(ctx, &call_questions, COOKIE_QUESTIONS(cookie) * 2 + 1);
	works(stack, 0);
	tally(LOST_CALLS, 1);
}

/* A call that does not count returns: what was inside of it is now inside of the call around it, and so are its waits,
 * which are in no picture if there is none. */
static __always_inline void drop_call(struct call_context *ctx, struct task_struct *task, bool trusted)
{
	struct call_stack *stack;
	struct open_call *call, *outer;
	struct thread *t;
	u32 tid, at, i;

	t = find_thread(task, trusted);
	if (!t)
		return;
	tid = t->key.tid;
	stack = bpf_map_lookup_elem(&call_stacks, &tid);
	if (!stack || stack->life != t->key.life)
		return;
	at = find_call(stack, ctx->sp - sizeof(u64), bpf_get_attach_cookie(ctx));
	if (at >= CALL_DEPTH)
		return;
	for (i = 0; i < CALL_DEPTH && stack->depth > at + 1; i++)
		left_call(t, stack);
	works(stack, 1);
	call = call_at(stack, at);
	stack->depth = at;
	if (at && at < CALL_DEPTH) {
		outer = call_at(stack, at - 1);
		pass_waits(outer, call);
		outer->slow_blocked += call->slow_blocked;
		outer->slow_runnable += call->slow_runnable;
		outer->inner += call->inner;
		outer->inner_on_cpu += call->inner_on_cpu;
	}
	works(stack, 0);
	stack->probes++;
}

static __always_inline int ask_session(struct call_context *ctx, struct task_struct *task, bool trusted)
{
	if (bpf_get_func_ip(ctx) == ctx->ip)
		return ask_call(ctx, task, trusted);
	ask_return(ctx, task, trusted);
	return 0;
}

#endif
