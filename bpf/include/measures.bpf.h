/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls from the scheduler's programs to the measures. A measure is defined in the file of its name; a constant says
 * whether it is on, so that the verifier removes calls to disabled ones. */
#ifndef STALLSCOPE_MEASURES_BPF_H
#define STALLSCOPE_MEASURES_BPF_H

#include "open_calls.bpf.h"
#include "ioctl.bpf.h"
#include "maps.bpf.h"

SHARED const volatile bool measure_offcpu;
SHARED const volatile bool measure_timeline;
SHARED const volatile bool measure_wakeup;
SHARED const volatile bool measure_locks;
SHARED const volatile bool measure_gil;

/* Samples are also recorded one by one, beside the scheduler's events. */
SHARED const volatile bool timeline_samples;

/* Waits that are not shorter, not longer, and in these states (bit per enum wait_state) count. */
SHARED const volatile u64 min_wait;
SHARED const volatile u64 max_wait;
SHARED const volatile u32 state_mask;

/* Sums of waits are also apart by slices of the trace of so many ns; 0: they are not. */
SHARED const volatile u64 slice_ns;
/* How often user space has doubled that length, as the trace goes on. */
SHARED u32 slice_doubled;

/* Whether the thread's time off the CPU, which ends at `now`, counts. */
static __always_inline bool wait_counts(const struct thread *t, u64 now)
{
	return t->out && now - t->out >= min_wait && now - t->out <= max_wait &&
	       (state_mask & (1U << (t->key.state & 31)));
}

/* Whether it was blocked, and not only waiting for a core. */
static __always_inline bool was_blocked(const struct thread *t)
{
	return t->key.state != WAIT_PREEMPTED && t->key.state != WAIT_NEW;
}

/* A thread's time off the CPU ends at `now`: one wait, or `waits` of them that could not be distinguished. */
extern int offcpu_ended(struct thread *t, u64 now, u64 waits);
/* The thread is about to exit: moves its pending sum into the map. */
extern int offcpu_flush(struct thread *t);

/* The same for the measure of wake-ups; `w`: the thread's entry, or NULL. */
struct wakeups;
extern int wakeup_ended(struct thread *t, struct wakeups *w, u64 now, u64 waits);

/* The thread is switched out in a futex call, to wait. */
struct futex_call;
extern int locks_waits(struct thread *t, const struct futex_call *call);
/* Like wakeup_ended(), after it. */
extern int locks_waited(struct thread *t, struct wakeups *w, u64 now);
/* The thread is about to exit. */
extern int locks_gone(struct thread *t);

/* The same for waits for Python's interpreter lock. If it is one, gil_begins() has to follow; if another thread has the
 * lock, gil_reads() before, as long as it returns 1. */
enum gil_waits {
	GIL_OTHER, /* no wait for that lock */
	GIL_FREE,
	GIL_HELD,
};
extern int gil_waits(struct thread *t, const struct futex_call *call);
extern int gil_reads(struct thread *t);
extern int gil_begins(struct thread *t);
extern int gil_ended(struct thread *t, u64 now);
extern int gil_gone(struct thread *t);

/* A core switches threads. `comes`: tid | prio << 32 of the next thread; `next`: its entry, if it is traced. */
extern int timeline_switch(struct thread *next, u64 now, u64 comes, u32 leaves, u32 left);
/* A thread is woken. `where`: its prio | core << 32. */
extern int timeline_wakeup(struct thread *t, u64 now, u64 where);
/* What a thread runs at `now`. Only from an interrupt that comes never while interrupts are off: no NMI. */
extern int timeline_sample(struct origin *of, u64 now);

/* Like offcpu_ended(), for a wait inside an ioctl. */
extern int ioctl_waited(struct thread *t, u64 now);
/* The interval that begins at `at` begins for the thread. */
extern int ioctl_cut(struct thread *t, u64 at);
/* The thread is about to exit. */
extern int ioctl_gone(struct thread *t);
/* Whether the thread is inside an ioctl. */
extern int ioctl_inside(struct thread *t);

/* Like offcpu_ended(), for a wait inside a call of a function. */
extern int calls_waited(struct thread *t, u64 now, u64 waits);
/* The thread is about to exit. */
extern int calls_gone(struct thread *t, u64 now);
/* The thread executes another program. */
extern int calls_left(struct thread *t);
/* Whether the thread is inside a call. */
extern int calls_inside(struct thread *t);
/* The stack at which the innermost call began; 0: none. To be used if a walk ended inside of it. */
extern u64 calls_stack(struct thread *t);
/* An ioctl of `of`, begun at `began`, returns. */
extern int calls_ioctl(struct origin *of, u64 began, u64 now);

#endif
