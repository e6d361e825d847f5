/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Per-thread state: where it lives and how it begins. */
#ifndef STALLSCOPE_THREAD_BPF_H
#define STALLSCOPE_THREAD_BPF_H

#include "maps.bpf.h"
#include <bpf/bpf_core_read.h>

/* `trusted`: a compile-time constant, true in BTF-typed programs, whose task pointers are read directly (no helper
 * call) and can key task storage. In raw tracepoints the arguments are plain numbers. */
#define TASK_FIELD(trusted, task, field) ((trusted) ? (task)->field : BPF_CORE_READ(task, field))

static __always_inline u32 task_state(struct task_struct *task, bool trusted)
{
	struct task_struct___pre_5_14 *old = (void *)task;

	if (bpf_core_field_exists(task->__state))
		return TASK_FIELD(trusted, task, __state);
	return trusted ? old->state : BPF_CORE_READ(old, state);
}

static __always_inline enum wait_state wait_state(u32 state)
{
	/* Like the kernel's task_state_index(): TASK_IDLE is UNINTERRUPTIBLE | NOLOAD. */
	if ((state & (TASK_UNINTERRUPTIBLE | TASK_NOLOAD)) == (TASK_UNINTERRUPTIBLE | TASK_NOLOAD))
		return WAIT_IDLE;
	if (state & TASK_INTERRUPTIBLE)
		return WAIT_INTERRUPTIBLE;
	if (state & TASK_UNINTERRUPTIBLE)
		return WAIT_UNINTERRUPTIBLE;
	if (state & TASK_STOPPED)
		return WAIT_STOPPED;
	if (state & TASK_TRACED)
		return WAIT_TRACED;
	return WAIT_OTHER;
}

/* The core that a task was last placed on, and will run on. */
static __always_inline u32 next_cpu(struct task_struct *task, bool trusted)
{
	if (!bpf_core_field_exists(task->wake_cpu)) /* a kernel for one core */
		return 0;
	return TASK_FIELD(trusted, task, wake_cpu);
}

/* How often the kernel has switched a task out. __schedule() counts a switch before it reports it. */
static __always_inline u64 kernel_switches(struct task_struct *task, bool trusted)
{
	return TASK_FIELD(trusted, task, nvcsw) + TASK_FIELD(trusted, task, nivcsw);
}

static __always_inline struct thread *find_thread(struct task_struct *task, bool trusted)
{
	u32 tid;

	if (trusted && use_storage)
		return bpf_task_storage_get(&thread_storage, task, 0, 0);
	tid = TASK_FIELD(trusted, task, pid);
	return bpf_map_lookup_elem(&thread_hash, &tid);
}

/* A number for a thread, or for what it does after an exec. Ids come back, these do not: user space counts down from the
 * top for the threads that it adds itself. */
static __always_inline u32 next_life(void)
{
	u32 zero = 0, *count = bpf_map_lookup_elem(&lives, &zero);

	return count ? __sync_fetch_and_add(count, 1) + 1 : 0;
}

static __always_inline void begin_thread(struct thread *t, struct task_struct *task, bool trusted, u64 start, u8 phase,
					 const struct origin *key)
{
	t->start = start;
	t->since = start;
	t->cut = interval_at(start);
	t->out = phase == PHASE_ON_CPU ? 0 : start;
	t->phase = phase;
	t->exec_runtime = TASK_FIELD(trusted, task, se.sum_exec_runtime);
	t->kernel_switches = kernel_switches(task, trusted);
	t->key = *key;
	t->key.tid = TASK_FIELD(trusted, task, pid);
	t->key.tgid = TASK_FIELD(trusted, task, tgid);
	t->key.life = next_life();
	t->first = t->key.life;
	t->lived = start;
}

/* The thread's entry, created if there is none: the iterator, which examines a thread for microseconds, must not undo
 * what the scheduler's events have written meanwhile. NULL: no memory (counted). */
static __always_inline struct thread *new_thread(struct task_struct *task, bool trusted, enum thread_slot slot,
						 u64 start, u8 phase, const struct origin *key)
{
	u32 tid = TASK_FIELD(trusted, task, pid), which = slot;
	struct thread *init = bpf_map_lookup_elem(&thread_init, &which);
	struct thread *t;

	if (!init)
		return NULL;
	__builtin_memset(init, 0, sizeof(*init));
	begin_thread(init, task, trusted, start, phase, key);
	if (trusted && use_storage) {
		t = bpf_task_storage_get(&thread_storage, task, init, BPF_LOCAL_STORAGE_GET_F_CREATE);
	} else {
		bpf_map_update_elem(&thread_hash, &tid, init, BPF_NOEXIST);
		t = bpf_map_lookup_elem(&thread_hash, &tid);
	}
	/* Task storage refuses to grow while it is in use on this CPU. With trace_all the thread's next event tries again. */
	if (t)
		count(NEW_THREADS);
	else if (!trace_all)
		count(LOST_THREADS);
	return t;
}

static __always_inline bool running(void)
{
	return run.began && !run.stopped;
}

/* The part of the wait that ends now for which the thread was blocked; for the rest it waited for a core. */
static __always_inline u64 blocked_part(const struct thread *t, u64 now)
{
	if (t->key.state == WAIT_PREEMPTED || t->key.state == WAIT_NEW)
		return 0;
	if (!t->woken) /* no wake-up seen: it came before the thread's state was set */
		return now - t->out;
	return t->woken < t->out ? 0 : t->woken - t->out;
}

static __always_inline void add_waits(struct wait_sum *sum, u64 count, u64 blocked, u64 runnable)
{
	if (!sum->count || blocked < sum->blocked_min)
		sum->blocked_min = blocked;
	if (blocked > sum->blocked_max)
		sum->blocked_max = blocked;
	if (!sum->count || runnable < sum->runnable_min)
		sum->runnable_min = runnable;
	if (runnable > sum->runnable_max)
		sum->runnable_max = runnable;
	sum->count += count;
	sum->blocked += blocked;
	sum->runnable += runnable;
}

#endif
