/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is known of the wake-ups of a thread: who ended its last wait, and who is about to end the present one. */
#ifndef STALLSCOPE_WAKEUP_BPF_H
#define STALLSCOPE_WAKEUP_BPF_H

#include "maps.bpf.h"
#include "measures.bpf.h"
#include "thread.bpf.h"

struct link {
	struct waker waker;
	u64 hash;  /* of it */
	u64 began; /* its own last wait began */
	u64 since; /* … and ended; 0: unknown */
};

struct chain {
	u32 count;
	u32 pad;
	struct link of[MAX_WAKERS];
};

struct wakeups {
	struct chain of[2];
	u64 began;   /* its last wait began */
	u64 since;   /* … and ended */
	u32 current; /* index of the chain that ended that wait; the other one is of the next wake-up */
	u32 pending; /* the other one is complete */
	u32 stacks;  /* stack_generation of that wake-up */
	u32 pad;
};

struct wakeup_storage {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct wakeups);
};
SHARED struct wakeup_storage wakeup_storage SEC(".maps");

/* Without task storage. An entry takes much memory: those of threads that were not woken for long leave. */
struct wakeup_hash {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct wakeups);
};
SHARED struct wakeup_hash wakeup_hash SEC(".maps");

/* Initial value of an entry: too large for the BPF stack. Never written. */
struct wakeup_init {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct wakeups);
};
SHARED struct wakeup_init wakeup_init SEC(".maps");

/* The thread's entry; if there is none, NULL, or a new one. */
static __always_inline struct wakeups *wakeups_of(struct task_struct *task, bool trusted, bool create)
{
	u32 tid, zero = 0;
	struct wakeups *w;
	void *init;

	if (trusted && use_storage)
		return bpf_task_storage_get(&wakeup_storage, task, 0, create ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
	tid = TASK_FIELD(trusted, task, pid);
	w = bpf_map_lookup_elem(&wakeup_hash, &tid);
	if (w || !create)
		return w;
	init = bpf_map_lookup_elem(&wakeup_init, &zero);
	if (init)
		bpf_map_update_elem(&wakeup_hash, &tid, init, BPF_NOEXIST);
	return bpf_map_lookup_elem(&wakeup_hash, &tid);
}

/* Makes the entry of a thread here, rather than where it is woken: that is with its lock held, and to ask for memory can
 * wake others. */
static __always_inline void prepare_wakeups(struct task_struct *task, bool trusted)
{
	if (measure_wakeup && use_storage)
		wakeups_of(task, trusted, true);
}

#endif
