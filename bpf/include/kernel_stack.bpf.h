/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Kernel stacks without unwinding, for a thread that waits, or wakes another one, at the same place as before.
 *
 * The context of a tracepoint program is on the kernel stack, and the return addresses of the functions that led there
 * are at fixed distances above it: their frames have constant size. The places found by a full walk are therefore kept
 * per thread, and the words there are compared at the next switch. If all are the same, so is the stack: where two
 * paths diverge, the last common function calls from different addresses, which are stored at the same place. A stale
 * word that happened to match when the places were searched could still mislead; one match in `memo_check` is therefore
 * walked in full, and differences are counted. */
#ifndef STALLSCOPE_KERNEL_STACK_BPF_H
#define STALLSCOPE_KERNEL_STACK_BPF_H

#include "stack.bpf.h"

#define MEMO_FRAMES 32
#define MEMO_WORDS 256 /* of the kernel stack, starting at the context */
/* The innermost frames are the same for every wait: our program, the tracepoint's internals (two frames, or three if
 * others trace sched_switch, too) and __schedule(). */
#define MEMO_INNER 4
/* … and for every wake-up: try_to_wake_up() instead of __schedule(); the fewest, as one more does no harm. */
#define MEMO_INNER_WAKING 3
/* The outermost one, the entry code, is directly below the user registers. The distance between it and the
 * others varies with CONFIG_RANDOMIZE_KSTACK_OFFSET. */
#define MEMO_OUTER 1

SHARED const volatile u32 memo_check; /* one match in this many is walked in full */

struct kernel_memo {
	u64 id;
	u32 frames;
	u32 words; /* size of the part of the stack that is read */
	u32 uses;
	u32 stacks; /* stack_generation */
	u32 inner;  /* frames that are the same always */
	u32 pad;
	u64 address[MEMO_FRAMES]; /* leaf first, as bpf_get_stack() gives them */
	u16 place[MEMO_FRAMES];	  /* word in the part that is read */
};

/* One for each, because they alternate. */
enum memo_use {
	MEMO_WAITS,
	MEMO_PREEMPTED,
	MEMO_WAKES,
	MEMO_USES,
};

struct kernel_memos {
	struct kernel_memo of[MEMO_USES];
};

struct memo_storage {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct kernel_memos);
};
SHARED struct memo_storage memo_storage SEC(".maps");

struct memo_words {
	u64 context; /* where the words begin; stored in memory, a pointer becomes a number */
	u64 top;     /* end of the stack: the saved user registers */
	u64 word[MEMO_WORDS];
};

struct memo_scratch {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct memo_words);
};
SHARED struct memo_scratch memo_scratch SEC(".maps");

static __always_inline u64 outermost(const struct memo_words *stack)
{
	u64 address = 0;

	bpf_probe_read_kernel(&address, sizeof(address), (void *)(stack->top - sizeof(u64)));
	return address;
}

/* The memo's id if the stack is still the same; else 0. */
__weak u64 recall(struct kernel_memo *memo, struct memo_words *stack)
{
	u32 words, end, inner, i;

	if (!memo || !stack)
		return 0;
	words = memo->words;
	inner = memo->inner;
	end = memo->frames - MEMO_OUTER;
	if (!words || words > MEMO_WORDS || memo->stacks != stack_generation ||
	    outermost(stack) != memo->address[end & (MEMO_FRAMES - 1)])
		return 0;
	if (bpf_probe_read_kernel(stack->word, words * sizeof(u64), (void *)stack->context))
		return 0;
	barrier_var(end);
	barrier_var(inner);
	for (i = MEMO_INNER_WAKING; i < MEMO_FRAMES; i++) {
		if (i >= end)
			break;
		if (i >= inner && stack->word[memo->place[i] & (MEMO_WORDS - 1)] != memo->address[i])
			return 0;
	}
	return memo->id;
}

struct place_search {
	u32 next; /* frame whose place is searched */
	u32 end;  /* … up to this one */
	u32 words;
};

/* Checks one word; returns whether the search is over. */
__weak int find_place(struct place_search *search, struct kernel_memo *memo, struct memo_words *stack, u32 word)
{
	u32 frame;

	if (!search || !memo || !stack)
		return 1;
	frame = search->next & (MEMO_FRAMES - 1);
	word &= MEMO_WORDS - 1;
	if (stack->word[word] != memo->address[frame])
		return 0;
	memo->place[frame] = word;
	search->words = word + 1;
	search->next = frame + 1;
	return frame + 1 >= search->end;
}

/* Stores where the frames of a stack that was just walked are. */
__weak int remember(struct kernel_memo *memo, struct memo_words *stack, const struct stack_record *record, u32 frames,
		    u64 id)
{
	struct place_search search = { .end = frames - MEMO_OUTER };
	u64 bytes;
	u32 i;

	if (!memo || !stack || !record)
		return 0;
	search.next = memo->inner;
	bytes = stack->top - stack->context;
	memo->words = 0;
	if (frames <= memo->inner + MEMO_OUTER || frames > MEMO_FRAMES)
		return 0;
	if (bytes > sizeof(stack->word))
		bytes = sizeof(stack->word);
	if (bpf_probe_read_kernel(stack->word, bytes, (void *)stack->context))
		return 0;
	for (i = 0; i < MEMO_FRAMES; i++)
		memo->address[i] = record->frames[i];
	if (outermost(stack) != memo->address[search.end & (MEMO_FRAMES - 1)])
		return 0;
	for (i = 0; i < MEMO_WORDS; i++)
		if (find_place(&search, memo, stack, i))
			break;
	if (search.next < search.end)
		return 0;
	memo->id = id;
	memo->frames = frames;
	memo->words = search.words;
	return 0;
}

/* The id of the kernel stack that the program interrupts, or on which it was called. */
static __always_inline u64 kernel_stack(void *ctx, struct stack_record *record)
{
	return stack_id(record, kernel_frames(record, bpf_get_stack(ctx, record->frames, KERNEL_STACK_BYTES, 0)));
}

/* The id of the kernel stack of the current task, which is being switched out, or wakes another one by itself:
 * recognised, or walked. */
static __always_inline u64 kernel_stack_again(void *ctx, enum memo_use use, struct stack_record *record)
{
	struct kernel_memo *memo = NULL;
	struct task_struct *current;
	struct kernel_memos *memos;
	struct memo_words *stack;
	u64 id, recalled = 0;
	u32 zero = 0, frames, generation;

	if (!task_regs || !use_storage)
		return kernel_stack(ctx, record);
	current = bpf_get_current_task_btf();
	memos = bpf_task_storage_get(&memo_storage, current, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (memos) {
		memo = &memos->of[use];
		memo->inner = use == MEMO_WAKES ? MEMO_INNER_WAKING : MEMO_INNER;
	}
	stack = bpf_map_lookup_elem(&memo_scratch, &zero);
	if (memo && stack) {
		*(volatile u64 *)&stack->context = (u64)ctx;
		*(volatile u64 *)&stack->top = (u64)bpf_task_pt_regs(current);
		recalled = recall(memo, stack);
	}
	if (recalled && ++memo->uses % memo_check) {
		count(MEMO_HITS);
		return recalled;
	}
	generation = stacks_now();
	frames = kernel_frames(record, bpf_get_stack(ctx, record->frames, KERNEL_STACK_BYTES, 0));
	id = stack_id(record, frames);
	if (recalled) {
		count(MEMO_CHECKS);
		if (recalled == id)
			return id;
		count(MEMO_WRONG);
	}
	if (memo && stack && bpf_map_lookup_elem(&known_stacks, &id)) {
		memo->stacks = generation;
		remember(memo, stack, record, frames, id);
	}
	return id;
}

#endif
