/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The begin and the end of a call at its probe. The thread's calls are a stack: see open_calls.bpf.h.
 *
 * A call ends by its return. Calls that a thread leaves in another way (longjmp, an exception) are found when it makes
 * another call above them, as the kernel does it, or returns from an outer one. */
#ifndef STALLSCOPE_TIMED_CALLS_BPF_H
#define STALLSCOPE_TIMED_CALLS_BPF_H

#include "call_arguments.bpf.h"
#include "call_copies.bpf.h"
#include "call_spans.bpf.h"
#include "call_sums.bpf.h"
#include "slow_calls.bpf.h"
#include "user_stack.bpf.h"

/* Whether a program uses the CPU's memory for stack walks. */
struct call_walkers {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
};
struct call_walkers call_walkers SEC(".maps");

/* The thread's calls, those of its program before an exec forgotten. NULL: no room. */
static __always_inline struct call_stack *stack_of(const struct thread *t)
{
	struct call_blank *none;
	struct call_stack *stack;
	u32 tid = t->key.tid;

	stack = bpf_map_lookup_elem(&call_stacks, &tid);
	if (!stack) {
		none = blank();
		if (!none)
			return NULL;
		bpf_map_update_elem(&call_stacks, &tid, &none->stack, BPF_NOEXIST);
		stack = bpf_map_lookup_elem(&call_stacks, &tid);
	}
	if (stack && stack->life != t->key.life) {
		stack->depth = 0;
		stack->life = t->key.life;
	}
	return stack;
}

/* The innermost call ended without a return. */
__weak int left_call(struct thread *t, struct call_stack *stack)
{
	struct call_sum *sum;
	struct call_key key;
	u32 last;

	if (!t || !stack)
		return 0;
	last = stack->depth - 1;
	if (last >= CALL_DEPTH)
		return 0;
	key = key_of(t, call_at(stack, last));
	sum = sum_of(&key);
	if (sum)
		sum->left++;
	else
		tally(LOST_CALLS, 1);
	stack->depth = last;
	return 0;
}

/* The id of the stack where the function was called, its own frame included. */
static __always_inline u64 calling_stack(struct call_context *ctx, u32 tgid)
{
	u32 slot = CONTEXT_CALL, zero = 0, *busy;
	struct stack_record *record;
	u64 id = 0;
	u8 end;

	record = bpf_map_lookup_elem(&stack_scratch, &slot);
	busy = bpf_map_lookup_elem(&call_walkers, &zero);
	if (!record || !busy)
		return 0;
	if (__sync_val_compare_and_swap(busy, 0, 1)) {
		tally(LOST_CALL_STACKS, 1);
		return 0;
	}
	id = walk_user(CONTEXT_CALL, ctx->cs, ctx->ip, ctx->sp, ctx->bp, tgid, true, record, &end);
	__sync_lock_test_and_set(busy, 0);
	return id;
}

/* Whether the innermost call began where another one begins now. */
static __always_inline bool same_place(struct call_stack *stack, u64 sp)
{
	u32 last = stack->depth - 1;

	return last < CALL_DEPTH && call_at(stack, last)->sp == sp;
}

/* Drops the calls that are not open any more when another one begins whose return address is at `sp`. At the same place
 * is a call that ended by calling this one: then the kernel's trampoline is the return address. */
__weak int drop_left(struct thread *t, struct call_stack *stack, u64 sp, u64 returns)
{
	u32 i, last;

	if (!t || !stack)
		return 0;
	for (i = 0; i < CALL_DEPTH; i++) {
		last = stack->depth - 1;
		if (last >= CALL_DEPTH || call_at(stack, last)->sp > sp)
			break;
		if (call_at(stack, last)->sp == sp && is_trampoline(returns))
			break;
		left_call(t, stack);
	}
	return 0;
}

/* Memory of this kind of program is not interrupted by others of the thread, but it can be switched out. */
static __always_inline void works(struct call_stack *stack, u64 is)
{
	barrier();
	*(volatile u64 *)&stack->working = is;
	barrier();
}

/* Returns whether its return is of interest. */
static __always_inline bool on_call(struct call_context *ctx, u64 cookie, struct task_struct *task, bool trusted)
{
	u64 came = bpf_ktime_get_ns(), returns = 0, outer = 0;
	struct call_stack *stack;
	struct open_call *call;
	struct thread *t;
	u32 depth;

	if (!running())
		return false;
	t = find_thread(task, trusted);
	if (!t)
		return false;
	stack = stack_of(t);
	if (!stack) {
		tally(LOST_CALLS, 1);
		return false;
	}
	forget_calls(stack);
	/* Walks up a stack need it, and calls at the same place of the stack. */
	if (user_stacks || same_place(stack, ctx->sp))
		bpf_probe_read_user(&returns, sizeof(returns), (void *)ctx->sp);
	if (stack->depth)
		drop_left(t, stack, ctx->sp, returns);
	depth = stack->depth;
	if (depth >= CALL_DEPTH) {
		tally(LOST_CALL_DEPTHS, 1);
		return false;
	}
	if (depth && depth <= CALL_DEPTH) {
		struct open_call *from = call_at(stack, depth - 1);

		outer = from->callers;
		if (from->sp == ctx->sp)
			returns = from->returns;
	}
	call = call_at(stack, depth);
	__builtin_memset(call, 0, sizeof(*call));
	call->sp = ctx->sp;
	call->returns = returns;
	call->callers = (outer ^ returns) * 0xff51afd7ed558ccdULL | 1;
	call->cookie = cookie;
	if (user_stacks)
		call->ustack = calling_stack(ctx, t->key.tgid);
	if (cookie & COOKIE_COPY)
		read_copy(ctx, stack, depth);
	if (depth && depth <= CALL_DEPTH && call_at(stack, depth - 1)->copy & COPY_INSIDE) {
		call->copy |= COPY_INSIDE;
		call->copy &= ~COPY_COUNTS;
	}
	works(stack, 1);
	call->began = bpf_ktime_get_ns();
	if (with_arguments(cookie))
		keep_arguments(ctx, t, call, depth);
	barrier();
	stack->depth = depth + 1;
	works(stack, 0);
	stack->probes++;
	stack->probes_time += call->began - came;
	return true;
}

/* The innermost call has returned. */
__weak int end_call(struct thread *t, struct call_stack *stack, u64 now, u64 result)
{
	struct origin key = { .state = RUNNING };
	struct call_time done = { .calls = 1 };
	struct open_call *call, *outer;
	u64 total, on_cpu;
	u32 last;

	if (!t || !stack)
		return 0;
	last = stack->depth - 1;
	if (last >= CALL_DEPTH)
		return 0;
	call = call_at(stack, last);
	total = now - call->began;
	if (!counts(total)) {
		add_fast(t, call, total);
		return drop_fast(stack);
	}
	stack->depth = last;
	on_cpu = total - call->blocked - call->runnable;
	add_call(t, call, total);
	if (record_call_spans)
		add_span(t, call, now, last);
	if (with_arguments(call->cookie))
		add_arguments(t, call, now, last, result);
	key.ustack = call->ustack;
	key.tid = t->key.tid;
	key.tgid = t->key.tgid;
	key.life = t->key.life;
	done.on_cpu = on_cpu - call->inner_on_cpu;
	add_call_time(&key, &done);
	if (judged())
		add_slow_waits(t, call);
	if (call->cookie & COOKIE_ERRORS && (u32)result)
		add_call_failure(t, call->cookie & COOKIE_FUNCTION, result);
	else if (call->copy & COPY_COUNTS)
		add_copy(t, call, total);
	if (!last || last >= CALL_DEPTH)
		return 0;
	outer = call_at(stack, last - 1);
	outer->blocked += call->blocked;
	outer->runnable += call->runnable;
	outer->slow_blocked += call->blocked;
	outer->slow_runnable += call->runnable;
	outer->inner += total;
	outer->inner_on_cpu += on_cpu;
	refine_copy(outer, call);
	return 0;
}

/* The place in the stack of the call that returns; CALL_DEPTH: it began before the trace. */
__weak int find_call(struct call_stack *stack, u64 sp, u64 cookie)
{
	u32 i, at;

	if (!stack)
		return CALL_DEPTH;
	for (i = 0; i < CALL_DEPTH; i++) {
		at = stack->depth - 1 - i;
		if (at >= CALL_DEPTH)
			break;
		if (call_at(stack, at)->sp == sp && call_at(stack, at)->cookie == cookie)
			return at;
	}
	return CALL_DEPTH;
}

/* `asked`: questions about it were answered before, see ask_return(). */
static __always_inline void on_call_return(struct call_context *ctx, u64 cookie, struct task_struct *task, bool trusted,
					   bool asked)
{
	struct call_stack *stack;
	struct thread *t;
	u32 tid, at, i;
	u64 now;

	if (!running()) /* it goes on at the trace's end */
		return;
	t = find_thread(task, trusted);
	if (!t)
		return;
	tid = t->key.tid;
	stack = bpf_map_lookup_elem(&call_stacks, &tid);
	if (!stack || stack->life != t->key.life)
		return;
	/* The return has removed its address from the stack. */
	at = find_call(stack, ctx->sp - sizeof(u64), cookie);
	if (at >= CALL_DEPTH)
		return;
	for (i = 0; i < CALL_DEPTH && stack->depth > at + 1; i++)
		left_call(t, stack);
	works(stack, 1);
	now = asked ? stack->returned : bpf_ktime_get_ns();
	end_call(t, stack, now, ctx->ax);
	works(stack, 0);
	stack->probes++;
	stack->probes_time += bpf_ktime_get_ns() - now;
}

#endif
