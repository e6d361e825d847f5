/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls of functions: how often, how long, and what the thread did meanwhile.
 *
 * The programs run at uprobes, with preemption on: another thread can come to its own probe on the same CPU before one
 * is done. Memory of a CPU is therefore used by one of them at a time; a thread's own entries need no such care. */
#include "asked_calls.bpf.h"
#include "call_ioctls.bpf.h"
#include "kernel_calls.bpf.h"
#include "measures.bpf.h"
#include "own_stack.bpf.h"
#include "thread.bpf.h"
#include "timed_calls.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* The calls that a thread is in; NULL: it made none in this life. */
static __always_inline struct call_stack *calls_of(struct thread *t)
{
	u32 tid = t->key.tid;
	struct call_stack *stack = bpf_map_lookup_elem(&call_stacks, &tid);

	if (!stack || stack->life != t->key.life)
		return NULL;
	forget_calls(stack);
	return stack;
}

int calls_inside(struct thread *t)
{
	struct call_stack *stack = t ? calls_of(t) : NULL;

	return stack && stack->depth;
}

u64 calls_stack(struct thread *t)
{
	struct call_stack *stack = t ? calls_of(t) : NULL;
	u32 last = stack ? stack->depth - 1 : CALL_DEPTH;

	if (last >= CALL_DEPTH)
		return 0;
	tally(CALL_STACKS_CUT, 1);
	return call_at(stack, last)->ustack;
}

/* The time on a core of calls that had not ended when the thread did. That of waits was counted when they ended. */
static __always_inline void add_open_times(struct thread *t, struct call_stack *stack, u64 now)
{
	u64 blocked = 0, runnable = 0, inner = 0, spent;
	struct origin key = { .state = RUNNING };
	struct call_time done = {};
	struct open_call *call;
	u32 i, at;

	key.tid = t->key.tid;
	key.tgid = t->key.tgid;
	key.life = t->key.life;
	/* From the innermost one on: what it did is part of the outer ones. */
	for (i = 0; i < CALL_DEPTH; i++) {
		at = stack->depth - 1 - i;
		if (at >= CALL_DEPTH)
			break;
		call = call_at(stack, at);
		blocked += call->blocked;
		runnable += call->runnable;
		spent = now - call->began - blocked - runnable;
		if ((s64)spent < 0)
			spent = 0;
		done.on_cpu = spent - call->inner_on_cpu - inner;
		inner = spent;
		key.ustack = call->ustack;
		if ((s64)done.on_cpu > 0)
			add_call_time(&key, &done);
	}
}

/* None of the thread's calls will return: it executes another program. */
int calls_left(struct thread *t)
{
	struct call_stack *stack = t ? calls_of(t) : NULL;
	u32 i;

	if (!stack)
		return 0;
	for (i = 0; i < CALL_DEPTH && stack->depth; i++)
		left_call(t, stack);
	return 0;
}

int calls_gone(struct thread *t, u64 now)
{
	struct call_stack *stack;
	struct call_sum *sum;
	struct call_key key;
	u32 tid, i;

	if (!t)
		return 0;
	tid = t->key.tid;
	stack = bpf_map_lookup_elem(&call_stacks, &tid);
	if (!stack)
		return 0;
	forget_calls(stack);
	for (i = 0; call_over && i < CALL_DEPTH && stack->depth - 1 < CALL_DEPTH; i++) {
		if (counts(now - call_at(stack, stack->depth - 1)->began))
			break;
		drop_fast(stack);
	}
	for (i = 0; i < CALL_DEPTH && i < stack->depth; i++) {
		if (judged() && stack->life == t->key.life)
			add_slow_waits(t, call_at(stack, i));
		key = key_of(t, call_at(stack, i));
		sum = sum_of(&key);
		if (!sum)
			continue;
		sum->open++;
		sum->open_time += now - call_at(stack, i)->began;
		sum->open_inner += call_at(stack, i)->inner;
		if (i + 1 < stack->depth)
			sum->open_inner += now - call_at(stack, i + 1)->began;
	}
	if (stack->life == t->key.life) /* else it has executed another program */
		add_open_times(t, stack, now);
	tally(CALL_PROBES, stack->probes);
	tally(CALL_PROBES_TIME, stack->probes_time);
	if (record_call_arguments)
		forget_arguments(tid);
	bpf_map_delete_elem(&call_stacks, &tid);
	return 0;
}

/* See wait_ended() in sched.bpf.c. The user stack is that of the wait, or of the ioctl in which it was, or else of the
 * call: its function is always there. */
int calls_waited(struct thread *t, u64 now, u64 waits)
{
	struct call_time waited = {};
	struct call_stack *stack;
	struct ioctl_call *ioctl;
	struct open_call *call;
	struct origin key;
	u32 last;

	if (!t || !t->out)
		return 0;
	stack = calls_of(t);
	if (!stack || stack->working)
		return 0;
	last = stack->depth - 1;
	if (last >= CALL_DEPTH)
		return 0;
	call = call_at(stack, last);
	if (t->out < call->began)
		return 0;
	waited.blocked = blocked_part(t, now);
	waited.runnable = now - t->out - waited.blocked;
	call->blocked += waited.blocked;
	call->runnable += waited.runnable;
	key = t->key;
	key.object = 0;
	if (t->late_out == t->out)
		key.ustack = t->late_ustack;
	ioctl = ioctl_at(t->key.tid, t->out);
	if (ioctl && ioctl->began >= call->began) {
		if (stack->ioctl != ioctl->began) {
			stack->ioctl = ioctl->began;
			stack->ioctl_blocked = 0;
			stack->ioctl_runnable = 0;
		}
		stack->ioctl_blocked += waited.blocked;
		stack->ioctl_runnable += waited.runnable;
		key.state |= ioctl->number << NUMBER_SHIFT;
		key.ustack = ioctl->origin.ustack;
	} else if ((t->late_out == t->out ? t->late_end : t->end) == WALK_IN_CALL) {
		key.ustack = calls_stack(t);
	}
	if (!judged())
		return add_call_time(&key, &waited);
	note_wait(call, &key, &waited);
	return 0;
}

struct no_programs calls_session_tail SEC(".maps"), calls_enter_tail SEC(".maps"), calls_return_tail SEC(".maps"),
	calls_begin_tail SEC(".maps");
struct no_programs resumed_enter_tail SEC(".maps"), resumed_return_tail SEC(".maps"), resumed_drop_tail SEC(".maps");

/* Entry and return in one: session links, since 6.13. A value other than 0 skips the return. */
static __always_inline int on_session(struct call_context *ctx, struct task_struct *task, bool trusted)
{
	u64 cookie = bpf_get_attach_cookie(ctx);

	/* At the return, the function's address is no longer where the thread is. */
	if (bpf_get_func_ip(ctx) == ctx->ip)
		return !on_call(ctx, cookie, task, trusted);
	on_call_return(ctx, cookie, task, trusted, false);
	return 0;
}

SEC("uprobe")
int calls_session(struct call_context *ctx)
{
	on_own_stack(ctx, &calls_session_tail);
	return on_session(ctx, bpf_get_current_task_btf(), true);
}

SEC("uprobe")
int calls_enter(struct call_context *ctx)
{
	on_own_stack(ctx, &calls_enter_tail);
	on_call(ctx, bpf_get_attach_cookie(ctx), bpf_get_current_task_btf(), true);
	return 0;
}

SEC("uprobe")
int calls_return(struct call_context *ctx)
{
	on_own_stack(ctx, &calls_return_tail);
	on_call_return(ctx, bpf_get_attach_cookie(ctx), bpf_get_current_task_btf(), true, false);
	return 0;
}

SEC("uprobe")
int calls_begin(struct call_context *ctx)
{
	on_own_stack(ctx, &calls_begin_tail);
	add_begin(ctx, bpf_get_attach_cookie(ctx), bpf_get_current_task_btf(), true);
	return 0;
}

SEC("uprobe")
int calls_session_raw(struct call_context *ctx)
{
	on_own_stack(ctx, &calls_session_tail);
	return on_session(ctx, (void *)bpf_get_current_task(), false);
}

SEC("uprobe")
int calls_enter_raw(struct call_context *ctx)
{
	on_own_stack(ctx, &calls_enter_tail);
	on_call(ctx, bpf_get_attach_cookie(ctx), (void *)bpf_get_current_task(), false);
	return 0;
}

SEC("uprobe")
int calls_return_raw(struct call_context *ctx)
{
	on_own_stack(ctx, &calls_return_tail);
	on_call_return(ctx, bpf_get_attach_cookie(ctx), (void *)bpf_get_current_task(), false, false);
	return 0;
}

SEC("uprobe")
int calls_begin_raw(struct call_context *ctx)
{
	on_own_stack(ctx, &calls_begin_tail);
	add_begin(ctx, bpf_get_attach_cookie(ctx), (void *)bpf_get_current_task(), false);
	return 0;
}

SEC("kprobe")
int calls_kernel_enter(struct call_context *ctx)
{
	return on_kernel_call(ctx, bpf_get_current_task_btf(), true);
}

SEC("kprobe")
int calls_kernel_return(struct call_context *ctx)
{
	return on_kernel_return(ctx, bpf_get_current_task_btf(), true);
}

SEC("kprobe")
int calls_kernel_enter_raw(struct call_context *ctx)
{
	return on_kernel_call(ctx, (void *)bpf_get_current_task(), false);
}

SEC("kprobe")
int calls_kernel_return_raw(struct call_context *ctx)
{
	return on_kernel_return(ctx, (void *)bpf_get_current_task(), false);
}

#define ASKED_PROGRAMS(suffix, task, trusted)                                                                          \
	SEC("uprobe")                                                                                                  \
	int asked_session##suffix(struct call_context *ctx)                                                            \
	{                                                                                                              \
		return ask_session(ctx, task, trusted);                                                                \
	}                                                                                                              \
	SEC("uprobe")                                                                                                  \
	int asked_enter##suffix(struct call_context *ctx)                                                              \
	{                                                                                                              \
		ask_call(ctx, task, trusted);                                                                          \
		return 0;                                                                                              \
	}                                                                                                              \
	SEC("uprobe")                                                                                                  \
	int asked_return##suffix(struct call_context *ctx)                                                             \
	{                                                                                                              \
		ask_return(ctx, task, trusted);                                                                        \
		return 0;                                                                                              \
	}                                                                                                              \
	SEC("uprobe")                                                                                                  \
	int resumed_enter##suffix(struct call_context *ctx)                                                            \
	{                                                                                                              \
		on_own_stack(ctx, &resumed_enter_tail);                                                                \
		return !on_call(ctx, bpf_get_attach_cookie(ctx), task, trusted);                                       \
	}                                                                                                              \
	SEC("uprobe")                                                                                                  \
	int resumed_return##suffix(struct call_context *ctx)                                                           \
	{                                                                                                              \
		on_own_stack(ctx, &resumed_return_tail);                                                               \
		on_call_return(ctx, bpf_get_attach_cookie(ctx), task, trusted, true);                                  \
		return 0;                                                                                              \
	}                                                                                                              \
	SEC("uprobe")                                                                                                  \
	int resumed_drop##suffix(struct call_context *ctx)                                                             \
	{                                                                                                              \
		on_own_stack(ctx, &resumed_drop_tail);                                                                 \
		drop_call(ctx, task, trusted);                                                                         \
		return 0;                                                                                              \
	}

ASKED_PROGRAMS(, bpf_get_current_task_btf(), true)
ASKED_PROGRAMS(_raw, (void *)bpf_get_current_task(), false)
