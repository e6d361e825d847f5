/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls of the kernel's own functions, at kprobes. They use the tables of other calls.
 *
 * The kernel runs these programs one at a time on a CPU. A thread's calls end in the reverse order of their begins, also
 * those in interrupts. A return that was not reported is found by the next call or return of the thread. */
#ifndef STALLSCOPE_KERNEL_CALLS_BPF_H
#define STALLSCOPE_KERNEL_CALLS_BPF_H

#include "call_sums.bpf.h"
#include "ioctl.bpf.h"
#include "kernel_stack.bpf.h"
#include "user_stack.bpf.h"

#define KERNEL_STACK_SHIFT 14 /* THREAD_SIZE of x86-64, or half of it with KASAN */

/* Parts of a thread's account. */
enum account {
	ACCOUNT_INTERRUPTIBLE,
	ACCOUNT_UNINTERRUPTIBLE,
	ACCOUNT_OTHER,
	ACCOUNT_RUNNABLE,
	ACCOUNTS,
};

struct kernel_call {
	struct open_call call;
	u64 kstack;
	u64 before[ACCOUNTS]; /* when it began */
	u64 inner[ACCOUNTS];  /* in calls that it made, and that have returned */
};

struct kernel_call_stack {
	u32 depth;
	u32 life;
	struct kernel_call calls[CALL_DEPTH];
};

/* By thread. One that ends in such a function has no other use for its entry. */
struct kernel_call_hash {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct kernel_call_stack);
};
struct kernel_call_hash kernel_calls SEC(".maps");

/* Never written: initial values, too large for the BPF stack. */
struct kernel_call_blanks {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct kernel_call_stack);
};
struct kernel_call_blanks kernel_call_blanks SEC(".maps");

static __always_inline struct kernel_call *kernel_call_at(struct kernel_call_stack *stack, u32 i)
{
	barrier_var(i);
	return &stack->calls[i & (CALL_DEPTH - 1)];
}

static __always_inline struct kernel_call_stack *kernel_calls_of(const struct thread *t, bool make)
{
	struct kernel_call_stack *stack, *none;
	u32 tid = t->key.tid, zero = 0;

	stack = bpf_map_lookup_elem(&kernel_calls, &tid);
	if (!stack && make) {
		none = bpf_map_lookup_elem(&kernel_call_blanks, &zero);
		if (!none)
			return NULL;
		bpf_map_update_elem(&kernel_calls, &tid, none, BPF_NOEXIST);
		stack = bpf_map_lookup_elem(&kernel_calls, &tid);
	}
	if (stack && stack->life != t->key.life) {
		stack->depth = 0;
		stack->life = t->key.life;
	}
	return stack;
}

/* What the thread has waited so far. It runs now. */
__weak int read_account(struct thread *t, struct kernel_call *to)
{
	u64 other = 0;
	u32 i;

	if (!t || !to)
		return 0;
	for (i = 0; i < WAIT_STATES; i++)
		if (i != WAIT_INTERRUPTIBLE && i != WAIT_UNINTERRUPTIBLE)
			other += t->blocked[i];
	to->before[ACCOUNT_INTERRUPTIBLE] = t->blocked[WAIT_INTERRUPTIBLE];
	to->before[ACCOUNT_UNINTERRUPTIBLE] = t->blocked[WAIT_UNINTERRUPTIBLE];
	to->before[ACCOUNT_OTHER] = other;
	to->before[ACCOUNT_RUNNABLE] = t->runnable;
	return 0;
}

/* The innermost call ended without a return. */
__weak int left_kernel_call(struct thread *t, struct kernel_call_stack *stack)
{
	struct call_sum *sum;
	struct call_key key;
	u32 last;

	if (!t || !stack)
		return 0;
	last = stack->depth - 1;
	if (last >= CALL_DEPTH)
		return 0;
	key = key_of(t, &kernel_call_at(stack, last)->call);
	sum = sum_of(&key);
	if (sum)
		sum->left++;
	else
		tally(LOST_CALLS, 1);
	stack->depth = last;
	return 0;
}

static __always_inline int on_kernel_call(struct call_context *ctx, struct task_struct *task, bool trusted)
{
	struct kernel_call_stack *stack;
	struct stack_record *record;
	struct kernel_call *made;
	u32 slot = CONTEXT_CALL, i, last;
	struct thread *t;
	u64 sp = ctx->sp;
	u8 end;

	if (!running())
		return 0;
	t = find_thread(task, trusted);
	if (!t)
		return 0;
	stack = kernel_calls_of(t, true);
	if (!stack) {
		tally(LOST_CALLS, 1);
		return 0;
	}
	for (i = 0; i < CALL_DEPTH; i++) {
		last = stack->depth - 1;
		if (last >= CALL_DEPTH || kernel_call_at(stack, last)->call.sp > sp ||
		    kernel_call_at(stack, last)->call.sp >> KERNEL_STACK_SHIFT != sp >> KERNEL_STACK_SHIFT)
			break;
		left_kernel_call(t, stack);
	}
	last = stack->depth;
	if (last >= CALL_DEPTH) {
		tally(LOST_CALL_DEPTHS, 1);
		return 0;
	}
	made = kernel_call_at(stack, last);
	__builtin_memset(made, 0, sizeof(*made));
	made->call.sp = sp;
	made->call.cookie = bpf_get_attach_cookie(ctx);
	record = bpf_map_lookup_elem(&stack_scratch, &slot);
	if (record && user_stacks && !(TASK_FIELD(trusted, task, flags) & PF_KTHREAD))
		made->call.ustack = user_stack(CONTEXT_CALL, task, t->key.tgid, false, record, &end);
	if (record && kernel_stacks)
		made->kstack = kernel_stack(ctx, record);
	read_account(t, made);
	made->call.began = bpf_ktime_get_ns();
	stack->depth = last + 1;
	return 0;
}

/* Adds a part of a call's own time. */
__weak int add_kernel_part(struct thread *t, struct kernel_call *made, u32 state, struct call_time *what)
{
	struct origin key = {};
	struct call_time part;

	if (!t || !made || !what)
		return 0;
	part = *what;
	if (!part.calls && !part.on_cpu && !part.blocked && !part.runnable)
		return 0;
	key.ustack = made->call.ustack;
	key.kstack = made->kstack;
	key.tid = t->key.tid;
	key.tgid = t->key.tgid;
	key.life = t->key.life;
	key.state = state | (u32)(made->call.cookie & COOKIE_FUNCTION) << NUMBER_SHIFT;
	return add_call_time(&key, &part);
}

static __always_inline u64 no_less(u64 a, u64 b)
{
	return a > b ? a - b : 0; /* an interval may have begun */
}

/* Splits the time of the innermost call, which has returned, and adds it. */
__weak int end_kernel_call(struct thread *t, struct kernel_call_stack *stack, u64 now)
{
	struct call_time done = { .calls = 1 }, waited = {};
	struct kernel_call *made, *outer = NULL;
	u64 total, own[ACCOUNTS];
	u32 last;
	int i;

	if (!t || !stack)
		return 0;
	last = stack->depth - 1;
	if (last >= CALL_DEPTH)
		return 0;
	made = kernel_call_at(stack, last);
	stack->depth = last;
	if (last)
		outer = kernel_call_at(stack, last - 1);
	own[0] = made->before[0];
	own[1] = made->before[1];
	own[2] = made->before[2];
	own[3] = made->before[3];
	read_account(t, made);
	for (i = 0; i < ACCOUNTS; i++) {
		own[i] = no_less(made->before[i], own[i]);
		if (i == ACCOUNT_RUNNABLE)
			made->call.runnable += own[i];
		else
			made->call.blocked += own[i];
		if (outer)
			outer->inner[i] += own[i];
		own[i] = no_less(own[i], made->inner[i]);
	}
	total = now - made->call.began;
	add_call(t, &made->call, total);
	done.on_cpu = no_less(total, made->call.blocked + made->call.runnable);
	if (outer) {
		outer->call.inner += total;
		outer->call.inner_on_cpu += done.on_cpu;
	}
	done.on_cpu = no_less(done.on_cpu, made->call.inner_on_cpu);
	add_kernel_part(t, made, RUNNING, &done);
	waited.runnable = own[ACCOUNT_RUNNABLE];
	waited.blocked = own[ACCOUNT_UNINTERRUPTIBLE];
	if (waited.blocked) {
		add_kernel_part(t, made, WAIT_UNINTERRUPTIBLE, &waited);
		waited.runnable = 0;
	}
	waited.blocked = own[ACCOUNT_INTERRUPTIBLE];
	if (waited.blocked) {
		add_kernel_part(t, made, WAIT_INTERRUPTIBLE, &waited);
		waited.runnable = 0;
	}
	waited.blocked = own[ACCOUNT_OTHER];
	return add_kernel_part(t, made, waited.blocked ? WAIT_OTHER : WAIT_PREEMPTED, &waited);
}

static __always_inline int on_kernel_return(struct call_context *ctx, struct task_struct *task, bool trusted)
{
	u64 now = bpf_ktime_get_ns(), cookie = bpf_get_attach_cookie(ctx);
	struct kernel_call_stack *stack;
	struct thread *t;
	u32 i, at;

	if (!running())
		return 0;
	t = find_thread(task, trusted);
	if (!t)
		return 0;
	stack = kernel_calls_of(t, false);
	if (!stack)
		return 0;
	for (i = 0; i < CALL_DEPTH; i++) {
		at = stack->depth - 1 - i;
		if (at >= CALL_DEPTH)
			return 0; /* it began before the trace */
		if (kernel_call_at(stack, at)->call.cookie == cookie)
			break;
	}
	if (i >= CALL_DEPTH)
		return 0;
	for (i = 0; i < CALL_DEPTH && stack->depth > at + 1; i++)
		left_kernel_call(t, stack);
	return end_kernel_call(t, stack, now);
}

#endif
