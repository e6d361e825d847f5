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

struct gil_state {
	u64 holder; /* address of a thread state */
	s32 locked; /* 1: held; 0: not; negative: not set up */
};

/* Of a thread state: its thread for the C library, and for the kernel (in the process's pid namespace). */
struct gil_thread {
	u64 self;
	u64 native;
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

/* Whether the present thread, which waits for this word, waits for the lock. `owner`: the id of the thread that holds it;
 * stays as it is if there is none, or if it is the present one. */
static __always_inline bool reads_gil(u32 tgid, u64 address, u32 *owner)
{
	struct gil_thread thread = {};
	struct gil_state state = {};
	struct python_space *space;
	struct task_struct *task;
	u64 gil;

	if (!python_frames || !python_generation)
		return false;
	space = bpf_map_lookup_elem(&python_spaces, &tgid);
	gil = space ? gil_of(space) : 0;
	if (!gil || address < gil || address - gil >= GIL_BYTES)
		return false;
	if (bpf_probe_read_user(&state, sizeof(state), (void *)(gil + GIL_HOLDER)) || state.locked != 1 ||
	    !state.holder)
		return true;
	if (bpf_probe_read_user(&thread, sizeof(thread), (void *)(state.holder + space->thread_id)))
		return true;
	task = (void *)bpf_get_current_task();
	if (thread.self != BPF_CORE_READ(task, thread.fsbase))
		*owner = thread.native;
	return true;
}

#endif
