/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Capturing stacks. A stack's id is a 64-bit hash of its frames; its frames are sent to user space once. */
#ifndef STALLSCOPE_STACK_BPF_H
#define STALLSCOPE_STACK_BPF_H

#include "maps.bpf.h"
#include <bpf/bpf_core_read.h>

/* One frame more than a stack has, to distinguish a full walk from a cut one. */
#define KERNEL_STACK_BYTES ((MAX_FRAMES + 1) * sizeof(u64))

/* To be read before a stack is taken: user space forgets stacks, then increments this. */
static __always_inline u32 stacks_now(void)
{
	return *(volatile u32 *)&stack_generation;
}

static __always_inline u64 hash_frames(const u64 *frames, u32 n, u32 salt)
{
	/* A separate scalar: what the verifier learns about it at each exit of the loop must not reach `n`, or it would
	 * explore the rest of the program once for each of the 127. */
	u64 end = (u64)n * sizeof(u64);
	u64 h = 0x9e3779b97f4a7c15ULL ^ n ^ (u64)salt << 32;
	u32 i;

	barrier_var(end);
	for (i = 0; i < MAX_FRAMES; i++) {
		if (i * sizeof(u64) >= end)
			break;
		h = (h ^ frames[i]) * 0xff51afd7ed558ccdULL;
		h ^= h >> 32;
	}
	return h | 1; /* 0 means none */
}

/* The hash of the `n` frames in `record`, whose `end` is set; 0 when there are none. */
__weak u64 stack_hash(const struct stack_record *record, u32 n)
{
	if (!record || !n)
		return 0;
	return hash_frames(record->frames, n & MAX_FRAMES, record->end);
}

/* The id of a stack: `hash` of its native frames, `python` of its Python functions, if there are any. */
static __always_inline u64 joined_id(u64 hash, u64 python)
{
	if (!python)
		return hash;
	hash = (hash ^ python) * 0xff51afd7ed558ccdULL;
	return (hash ^ hash >> 32) | 1;
}

/* Sends the `n` words in `record` if the stack `id` is not known yet; the last `python` words are functions. */
__weak u64 send_stack(struct stack_record *record, u32 n, u32 python, u64 id)
{
	u32 one = 1;

	if (!record || bpf_map_lookup_elem(&known_stacks, &id))
		return id;
	n = (n + python) & STACK_MASK;
	record->type = RECORD_STACK;
	record->count = n;
	record->id = id;
	if (python)
		record->end |= STACK_HAS_PYTHON;
	if (bpf_ringbuf_output(&records, record, offsetof(struct stack_record, frames) + n * sizeof(u64),
			       BPF_RB_NO_WAKEUP)) {
		count(LOST_STACKS);
		return id;
	}
	/* Only now: a stack that could not be sent is sent when it occurs again. */
	if (bpf_map_update_elem(&known_stacks, &id, &one, BPF_NOEXIST) == 0)
		count(NEW_STACKS);
	else if (!bpf_map_lookup_elem(&known_stacks, &id))
		count(STACK_TABLE_FULL);
	return id;
}

/* The id of the `n` frames in `record`, whose `end` is set; new ones are sent. 0 when there are none. */
static __always_inline u64 stack_id(struct stack_record *record, u32 n)
{
	u64 hash = stack_hash(record, n);

	return hash ? send_stack(record, n & MAX_FRAMES, 0, hash) : 0;
}

/* Number of frames that bpf_get_stack() wrote for a kernel stack, from the number of bytes that it returned.
 * MAX_FRAMES + 1 means that there are more. */
static __always_inline u32 kernel_frames(struct stack_record *record, long bytes)
{
	u32 frames;

	if (bytes <= 0)
		return 0;
	frames = ((u64)bytes & 0xffff) / sizeof(u64);
	record->end = frames > MAX_FRAMES ? WALK_TOO_DEEP : WALK_COMPLETE;
	return frames > MAX_FRAMES ? MAX_FRAMES : frames;
}

#endif
