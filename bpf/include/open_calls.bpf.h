/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The calls of functions that a thread is in. The kernel replaces the return address of such a call by the address of
 * its own trampoline, so that walks up a stack need what was there. */
#ifndef STALLSCOPE_OPEN_CALLS_BPF_H
#define STALLSCOPE_OPEN_CALLS_BPF_H

#include "maps.bpf.h"

#define CALL_DEPTH 8
#define CALL_ARGUMENTS 16 /* a power of two */
/* The kernel maps the trampoline as near the end of the address space as possible: xol_add_vma(), kernel/events/uprobes.c.
 */
#define TRAMPOLINES 0x7fffffffULL /* addresses from this << 16 on */

struct open_call {
	u64 began;
	u64 sp;		  /* where its return address is */
	u64 returns;	  /* … and what it was */
	u64 callers;	  /* hash of `returns` of this and of all outer calls */
	u64 ustack;	  /* where it was called */
	u64 blocked;	  /* by its waits that have ended, and by those of inner calls that have returned */
	u64 runnable;	  /* the same */
	u64 inner;	  /* time in inner calls that have returned */
	u64 inner_on_cpu; /* … and on a core in these and in ioctls */
	u64 cookie;	  /* which function: see call_cookie.h */
	u64 bytes;	  /* that it copies, if `copy` has COPY_SIZE */
	u64 copy;	  /* enum copy_direction, and COPY_… */
	/* If whether a call counts is known when it returns: */
	u64 slow_blocked; /* of `blocked`, in inner calls that counted */
	u64 slow_runnable;
	u64 longest; /* its longest wait, or that of inner calls that did not count … */
	u64 longest_ustack;
	u64 longest_kstack;
	u64 longest_state;
};

struct call_stack {
	u32 depth;
	u32 life;	   /* of the thread: what was open before an exec is no longer */
	u64 probes;	   /* how often the programs ran for the thread */
	u64 probes_time;   /* … and for how long */
	u64 working;	   /* a program is changing the calls: a wait meanwhile is that of none */
	u64 ioctl;	   /* begin of the ioctl in which the last wait was */
	u64 ioctl_blocked; /* … and its waits */
	u64 ioctl_runnable;
	u64 duration; /* ns, of the call that returns and is asked about; mirrored in tracers/expressions/helpers.h */
	u64 returned; /* … and when it did */
	struct open_call calls[CALL_DEPTH];
	u64 arguments[CALL_ARGUMENTS]; /* of the innermost call, from 1 on: the BPF stack has no room */
};

/* By thread. */
struct call_stack_hash {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct call_stack);
};
SHARED struct call_stack_hash call_stacks SEC(".maps");

SHARED const volatile bool measure_calls;

/* The verifier is to see that the index stays in bounds. */
static __always_inline struct open_call *call_at(struct call_stack *stack, u32 i)
{
	barrier_var(i);
	return &stack->calls[i & (CALL_DEPTH - 1)];
}

/* Calls that began before this are not seen to return: user space has removed their probes. */
SHARED u64 calls_forgotten;

/* The outer ones of a forgotten call are older. */
static __always_inline void forget_calls(struct call_stack *stack)
{
	u32 last = stack->depth - 1;

	if (has_budget && last < CALL_DEPTH && call_at(stack, last)->began < *(volatile u64 *)&calls_forgotten)
		stack->depth = 0;
}

static __always_inline bool is_trampoline(u64 address)
{
	return address >> 16 == TRAMPOLINES;
}

/* Distinguishes stacks whose words are the same because they hold the trampoline's address. 0: no call is open. */
static __always_inline u64 open_callers(u32 tid)
{
	struct call_stack *stack;
	u32 last;

	if (!measure_calls)
		return 0;
	stack = bpf_map_lookup_elem(&call_stacks, &tid);
	last = stack ? stack->depth - 1 : CALL_DEPTH;
	return last < CALL_DEPTH ? stack->calls[last].callers : 0;
}

/* The return address that was at `at` before the kernel replaced it by `found`; `found` if that is not known. */
__weak u64 replaced_return(u32 tid, u64 at, u64 found)
{
	struct call_stack *stack = bpf_map_lookup_elem(&call_stacks, &tid);
	u32 i;

	if (!stack)
		return found;
	for (i = 0; i < CALL_DEPTH && i < stack->depth; i++)
		if (stack->calls[i].sp == at)
			return stack->calls[i].returns;
	return found;
}

/* Whether a walk that ended at `sp` may lack the innermost open call's function: it has not come so far, or frame pointers
 * have led it while tables were missing; from the trampoline, there is no way to the callers. */
__weak int call_not_reached(u32 tid, u64 from, u64 sp)
{
	struct call_stack *stack = bpf_map_lookup_elem(&call_stacks, &tid);
	u32 last = stack ? stack->depth - 1 : CALL_DEPTH;

	return last < CALL_DEPTH && (is_trampoline(from) || sp <= stack->calls[last].sp);
}

/* How a walk ended for its thread. */
static __always_inline u32 end_of_walk(u32 tid, u64 from, u64 sp, u32 end, bool missed)
{
	if (!measure_calls || end == WALK_COMPLETE)
		return end;
	return call_not_reached(tid, from, missed ? 0 : sp) ? WALK_IN_CALL : end;
}

#endif
