/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which thread holds Python's interpreter lock (GIL).
 *
 * CPython's structure of it (Include/internal/pycore_gil.h) says which thread took it last, and whether it was given back
 * since. It has the futexes for which threads wait inside. Only the lock of the main interpreter is looked at: others may
 * have their own. */
#ifndef STALLSCOPE_GIL_BPF_H
#define STALLSCOPE_GIL_BPF_H

#include "python.bpf.h"

#define GIL_BYTES 208
#define GIL_HOLDER 8
/* Where glibc's struct pthread has the kernel's id of the thread (nptl/descr.h). */
#define PTHREAD_TID 0x2d0

struct gil_state {
	u64 holder; /* address of a thread state */
	s32 locked; /* 1: held; 0: not; negative: not set up */
};

/* Address of the lock; 0: not known. It stays where it is, and is read once. */
static __always_inline u64 gil_of(struct python_space *space)
{
	u64 interpreter = 0, gil = 0;

	if (space->gil || !space->gil_at)
		return space->gil;
	/* The main interpreter's pointer follows that of the newest one. */
	if (bpf_probe_read_user(&interpreter, sizeof(interpreter), (void *)(space->interpreters + sizeof(u64))) ||
	    !interpreter || bpf_probe_read_user(&gil, sizeof(gil), (void *)(interpreter + space->gil_at)))
		return 0;
	if (gil != interpreter + space->gil_own)
		return 0;
	space->gil = gil;
	return gil;
}

/* Address of the lock if the present thread, which waits for this word, waits for it; else 0. */
static __always_inline u64 gil_waited(struct python_space *space, u64 address)
{
	u64 gil = gil_of(space);

	return gil && address >= gil && address - gil < GIL_BYTES ? gil : 0;
}

/* The state of the thread that holds the lock; 0: none does. */
static __always_inline u64 gil_holder(u64 gil)
{
	struct gil_state state = {};

	if (bpf_probe_read_user(&state, sizeof(state), (void *)(gil + GIL_HOLDER)) || state.locked != 1)
		return 0;
	return state.holder;
}

/* The present thread's id in the innermost namespace that it is in. */
static __always_inline u32 inner_tid(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	u32 level = BPF_CORE_READ(pid, level), nr = 0;
	u64 at = (u64)pid + bpf_core_field_offset(pid->numbers) + (u64)level * bpf_core_type_size(struct upid);

	bpf_probe_read_kernel(&nr, sizeof(nr), (void *)at);
	return nr;
}

/* The kernel's id of the thread with this state, as its process sees it; 0: not known, or the present thread. */
static __always_inline u32 gil_thread(const struct python_space *space, u64 state)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	u64 self = 0, own = BPF_CORE_READ(task, thread.fsbase);
	u32 tid = 0;

	if (bpf_probe_read_user(&self, sizeof(self), (void *)(state + space->thread_id)) || self == own)
		return 0;
	if (space->thread_native != NO_STEP) {
		bpf_probe_read_user(&tid, sizeof(tid), (void *)(state + space->thread_native));
		return tid;
	}
	/* Another C library has something else there. */
	if (bpf_probe_read_user(&tid, sizeof(tid), (void *)(own + PTHREAD_TID)) || tid != inner_tid(task))
		return 0;
	if (bpf_probe_read_user(&tid, sizeof(tid), (void *)(self + PTHREAD_TID)))
		return 0;
	return tid;
}

/* Whether the present thread, which waits for this word, waits for the lock. `owner`: the id of the thread that holds it;
 * stays as it is if there is none, or if it is the present one. */
static __always_inline bool reads_gil(u32 tgid, u64 address, u32 *owner)
{
	struct python_space *space;
	u64 gil, holder;
	u32 tid;

	if (!python_frames || !python_generation)
		return false;
	space = bpf_map_lookup_elem(&python_spaces, &tgid);
	gil = space ? gil_waited(space, address) : 0;
	if (!gil)
		return false;
	holder = gil_holder(gil);
	tid = holder ? gil_thread(space, holder) : 0;
	if (tid)
		*owner = tid;
	return true;
}

#endif
