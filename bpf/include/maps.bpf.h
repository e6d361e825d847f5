/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Maps and knobs shared by the probes. Defined once, in scope.bpf.c; the linker resolves the others. */
#ifndef STALLSCOPE_MAPS_BPF_H
#define STALLSCOPE_MAPS_BPF_H

#include "kernel.h"
#include "records.h"
#include <bpf/bpf_helpers.h>

#ifndef DEFINE_SHARED
#define SHARED extern
#else
#define SHARED
#endif

/* Knobs: set by the loader before verification, constant afterwards. */
SHARED const volatile bool trace_all;	     /* every thread but the tracer's */
SHARED const volatile bool follow_children;  /* processes forked by a traced one */
SHARED const volatile bool use_storage;	     /* task storage (5.11+); else the hash by tid */
SHARED const volatile bool switch_has_state; /* sched_switch passes prev_state (5.18+) */
SHARED const volatile bool intervals;	     /* the trace is cut: see struct cuts */
SHARED const volatile bool user_stacks;
SHARED const volatile bool kernel_stacks;
SHARED const volatile bool task_regs; /* bpf_task_pt_regs() (5.15+) */
SHARED const volatile u32 self_tgid;
SHARED const volatile bool has_budget; /* what the probes cost is measured, and limited */
/* When the trace runs: [began, …) while began != 0 and stopped == 0. Written by user space. */
struct run {
	u64 began;
	u64 stopped;
};
SHARED struct run run;
/* Set by user space when the iterator has been to all threads: one that is seen later was hidden from it. */
SHARED u32 all_seeded;
/* Incremented by user space when it has forgotten stacks: they are sent again when they occur again. */
SHARED u32 stack_generation;

/* What is left out since the probes cost too much. User space sets the bits while the trace runs; what has begun by then
 * ends as usual. Mirrored in tracers/engines/ebpf/shedding.py. */
enum shed_bit {
	SHED_WAKER_STACKS = 1, /* where threads wake others, or create them */
	SHED_WAKERS = 2,
	SHED_LOCKS = 4,
	SHED_IOCTLS = 8,
	SHED_FAULTS = 16, /* addresses of page faults */
};
SHARED u32 shed;
/* For how many samples one counts: user space makes samples rarer. */
SHARED u32 sample_weight;
/* Waits of threads that were last switched out less than so many ns before have no user stacks any more, but for one in
 * STORM_KEPT, chosen by chance; 0: all have. */
SHARED u64 storm_gap;
#define STORM_KEPT 16

static __always_inline bool is_shed(enum shed_bit which)
{
	return has_budget && *(volatile u32 *)&shed & which;
}

/* Whether the user stack of a wait is left out, if its thread was last switched out `gap` ns before. */
static __always_inline bool wait_stack_is_shed(u64 gap)
{
	return has_budget && gap < *(volatile u64 *)&storm_gap && bpf_get_prandom_u32() % STORM_KEPT;
}

/* Sums by origin are in two tables, behind a map of maps: user space replaces a table while programs write, and when
 * bpf_map_update_elem() returns, no program uses the old one any more (1ae80cf31938, 4.20). */
#define SUM_TABLES 2

/* What a program at a tracepoint of perf's returns: with 0, the kernel would drop the event for perf, whoever runs it
 * (perf_trace_run_bpf_submit() of kernel/events/core.c). Raw tracepoints have nothing like that. */
#define KEEP 1

#define DEFINE_SUM_TABLES(map, key_bytes, value_bytes)                                                                 \
	struct map##_table {                                                                                           \
		__uint(type, BPF_MAP_TYPE_HASH);                                                                       \
		__uint(max_entries, 1);                                                                                \
		__uint(key_size, key_bytes);                                                                           \
		__uint(value_size, value_bytes);                                                                       \
	};                                                                                                             \
	struct map##_tables {                                                                                          \
		__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);                                                              \
		__uint(max_entries, SUM_TABLES);                                                                       \
		__type(key, u32);                                                                                      \
		__array(values, struct map##_table);                                                                   \
	};                                                                                                             \
	struct map##_tables map SEC(".maps")

struct cut_array {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cuts);
};
SHARED struct cut_array cuts SEC(".maps");

/* Numbers given so far: see next_life(). Not a variable: user space writes all of them at once. */
struct life_count {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
};
SHARED struct life_count lives SEC(".maps");

struct thread_storage {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
};
SHARED struct thread_storage thread_storage SEC(".maps");

struct thread_hash {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct thread);
};
SHARED struct thread_hash thread_hash SEC(".maps");

/* For how long a core ran traced threads. */
struct core_time {
	u64 since; /* the one that runs was switched in; 0: none */
	u64 sum;   /* of those before */
};

struct core_times {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct core_time);
};
SHARED struct core_times core_times SEC(".maps");

/* Process ids (tgid) and thread ids that the seeding iterator adds to the scope. */
struct id_set {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u8);
};
SHARED struct id_set scope_tgids SEC(".maps");
SHARED struct id_set scope_tids SEC(".maps");
/* A process that was started for the trace: it enters the scope at its exec. */
SHARED struct id_set scope_expected SEC(".maps");

/* Stacks that have been sent to user space. */
struct stack_set {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, u32);
};
SHARED struct stack_set known_stacks SEC(".maps");

struct record_ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
};
SHARED struct record_ring records SEC(".maps");

struct counter_array {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COUNTERS);
	__type(key, u32);
	__type(value, u64);
};
SHARED struct counter_array counters SEC(".maps");

/* Where a program that takes stacks runs. Its working memory is too large for the BPF stack. Programs of different
 * kinds can interrupt each other, but a program never interrupts itself on one CPU. */
enum context {
	CONTEXT_SCHED,	/* with interrupts off: switches and wake-ups */
	CONTEXT_SAMPLE, /* of a timer or a counter; may interrupt the others */
	CONTEXT_CALL,	/* at the entry or the return of a function */
	CONTEXT_SYSCALL,
	CONTEXT_LOCK,  /* where the kernel has waited for a lock, and may sleep */
	CONTEXT_FORK,  /* where a thread is created; with preemption on, too */
	CONTEXT_EVENT, /* at what the user named; its program says whether the memory is free */
	CONTEXTS,
};

/* One entry for each context in use: the first ones of the enum. */
struct stack_scratch {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct stack_record);
};
SHARED struct stack_scratch stack_scratch SEC(".maps");

/* For the iterators and scope_walk: only one runs at a time. */
struct iter_scratch {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct stack_record);
};
SHARED struct iter_scratch iter_scratch SEC(".maps");

/* Initial value of a new thread's entry: too large for the BPF stack. One for each kind of program that makes entries,
 * as these can interrupt each other. A program does not interrupt itself on one CPU; see on_fork() for the exception. */
enum thread_slot {
	SLOT_SCHED, /* with interrupts off */
	SLOT_FORK,
	SLOT_EXEC,
	SLOT_ITER,
	THREAD_SLOTS,
};

struct thread_init {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, THREAD_SLOTS);
	__type(key, u32);
	__type(value, struct thread);
};
SHARED struct thread_init thread_init SEC(".maps");

/* The beginning of the interval that `now` is in; 0 in the first one. */
static __always_inline u64 interval_at(u64 now)
{
	volatile struct cuts *known;
	u32 zero = 0;
	u64 next;

	if (!intervals)
		return 0;
	known = bpf_map_lookup_elem(&cuts, &zero);
	if (!known)
		return 0;
	next = known->next; /* before `last`, which is written before it */
	return now >= next ? next : known->last;
}

static __always_inline void count(enum counter which)
{
	u32 key = which;
	u64 *value = bpf_map_lookup_elem(&counters, &key);

	if (value)
		(*value)++;
}

#endif
