/* Capturing stacks. A stack's id is a 64-bit hash of its frames; its frames go to user space once. */
#ifndef STALLSCOPE_STACK_BPF_H
#define STALLSCOPE_STACK_BPF_H

#include "maps.bpf.h"
#include <bpf/bpf_core_read.h>

static __always_inline u64 hash_frames(const u64 *frames, u32 n)
{
	/* A scalar of its own: what the verifier learns about it at each exit of the loop must not reach `n`, or it would
	 * explore the rest of the program once for each of the 127. */
	u64 end = (u64)n * sizeof(u64);
	u64 h = 0x9e3779b97f4a7c15ULL ^ n;
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

/* The id of the `n` frames in `record`, sent if they are new. 0 when there are none. */
__weak u64 stack_id(struct stack_record *record, u32 n)
{
	u32 one = 1;
	u64 id;

	if (!record || !n)
		return 0;
	/* MAX_FRAMES + 1 frames mean that there are more. Without a branch, for the verifier would follow both. */
	record->cut = (n & 0xff) >> 7;
	n = ((n & 0xff) - record->cut) & MAX_FRAMES;
	id = hash_frames(record->frames, n);
	if (bpf_map_lookup_elem(&known_stacks, &id))
		return id;
	record->type = RECORD_STACK;
	record->count = n;
	record->id = id;
	if (bpf_ringbuf_output(&records, record, offsetof(struct stack_record, frames) + n * sizeof(u64),
			       BPF_RB_NO_WAKEUP)) {
		count(LOST_STACKS);
		return id;
	}
	/* Only now: a stack that could not be sent is sent when it turns up again. */
	if (bpf_map_update_elem(&known_stacks, &id, &one, BPF_NOEXIST) == 0)
		count(NEW_STACKS);
	else if (!bpf_map_lookup_elem(&known_stacks, &id))
		count(STACK_TABLE_FULL);
	return id;
}

/* Frames that bpf_get_stack() wrote, from the number of bytes that it returns. */
static __always_inline u32 frames_of(long bytes)
{
	if (bytes <= 0)
		return 0;
	return ((u64)bytes & 0xffff) / sizeof(u64);
}

struct frame_walk {
	struct stack_record *record;
	struct task_struct *task; /* whose memory, where it is not the current one's */
	u64 bp;
	u32 stopped;
};

/* Stores what one step of a frame-pointer walk read: [bp] is the caller's bp, [bp + 8] the return address. A caller's
 * frame must lie above its callee's, as the kernel's perf_callchain_user() demands. Positions come from bpf_loop()'s own
 * index: to a counter of ours the verifier would give a constant in every round, and explore what follows 127 times. */
static __always_inline long keep_frame(struct frame_walk *walk, u32 index, const u64 *frame)
{
	if (index >= MAX_FRAMES || !frame[1]) {
		walk->stopped = 1;
		return 1;
	}
	walk->record->frames[index + 1] = frame[1];
	walk->bp = frame[0] > walk->bp ? frame[0] : 0;
	return 0;
}

static long walk_frame(u32 index, void *context)
{
	struct frame_walk *walk = context;
	u64 frame[2] = {};

	if (walk->bp && !(walk->bp & 7))
		bpf_probe_read_user(frame, sizeof(frame), (void *)walk->bp);
	return keep_frame(walk, index, frame);
}

/* bpf_loop() returns how many rounds it made; the one that stopped it stored nothing. The leaf is one more. */
static __always_inline u32 frames_walked(const struct frame_walk *walk, long rounds)
{
	return rounds < 0 ? 1 : 1 + (u32)rounds - walk->stopped;
}

/* The user stack of the current task, which is in the kernel, into `record`; returns the number of frames.
 * This is the one place that knows how user stacks are unwound. */
static __always_inline u32 walk_user_stack(void *ctx, struct stack_record *record)
{
	struct frame_walk walk = { .record = record };
	struct pt_regs *regs;
	long bytes;

	if (!walk_in_bpf) {
		bytes = bpf_get_stack(ctx, record->frames, sizeof(record->frames), BPF_F_USER_STACK);
		if (bytes < 0)
			count(STACKS_FAILED);
		return frames_of(bytes);
	}
	regs = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
	record->frames[0] = BPF_CORE_READ(regs, ip);
	walk.bp = BPF_CORE_READ(regs, bp);
	return frames_walked(&walk, bpf_loop(MAX_FRAMES, walk_frame, &walk, 0));
}

#endif
