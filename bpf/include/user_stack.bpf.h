/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The user stack of the current task: recognised, or unwound.
 *
 * A walk depends only on its initial registers, on the tables, and on the words of the stack that it reads. The places
 * of those words are therefore kept with a hash of the words: if the registers and the words at these places are
 * the same, so is the stack, and nothing is unwound. One match in `user_memo_check` is walked nevertheless, and
 * differences are counted. */
#ifndef STALLSCOPE_USER_STACK_BPF_H
#define STALLSCOPE_USER_STACK_BPF_H

#include "python.bpf.h"
#include "stack.bpf.h"
#include "unwind.bpf.h"

#define USER_MEMOS 4

SHARED const volatile bool user_memo;
SHARED const volatile u32 user_memo_check; /* one match in this many is walked in full */

struct user_memo {
	u64 id; /* of the native frames */
	u64 ip;
	u64 sp;
	u64 bp;
	u64 hash;
	u64 callers;	/* open_callers() */
	u32 version;	/* of the mappings */
	u32 generation; /* of the tables, if the walk missed something; else 0 */
	u32 uses;
	u32 stacks; /* stack_generation */
	u16 words;  /* from sp up to the last place */
	u8 places;
	u8 end; /* enum walk_end */
	struct places where;
};

/* A thread may wait at several places. */
struct user_memos {
	struct user_memo of[USER_MEMOS];
	u64 next; /* to be replaced next, modulo USER_MEMOS */
};

struct user_memo_storage {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct user_memos);
};
SHARED struct user_memo_storage user_memo_storage SEC(".maps");

/* The memo with these initial registers; else the one to be replaced. */
__weak int choose_memo(struct user_memos *memos, u64 ip, u64 sp, u64 bp)
{
	u32 i;

	if (!memos)
		return 0;
	for (i = 0; i < USER_MEMOS; i++)
		if (memos->of[i].ip == ip && memos->of[i].sp == sp && memos->of[i].bp == bp)
			return i;
	return memos->next++ & (USER_MEMOS - 1);
}

static __always_inline struct user_memo *memo_of(u64 ip, u64 sp, u64 bp)
{
	struct user_memos *memos;

	if (!user_memo || !use_storage)
		return NULL;
	memos = bpf_task_storage_get(&user_memo_storage, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	return memos ? &memos->of[choose_memo(memos, ip, sp, bp) & (USER_MEMOS - 1)] : NULL;
}

/* The memo's id if the stack is still the same; else 0. Leaves the words that it has read in the window. */
__weak u64 recall_user(struct user_memo *memo, struct unwind_walk *walk)
{
	u32 end, i;
	u64 h = 0;

	if (!memo || !walk || memo->callers != open_callers(walk->tid))
		return 0;
	if (memo->ip != walk->pc || memo->sp != walk->sp || memo->bp != walk->bp)
		return 0;
	if (memo->stacks != stack_generation || memo->version != walk->space.version ||
	    (memo->generation && memo->generation != unwind_generation))
		return 0;
	walk->want = walk->sp;
	if (!read_window(walk, memo->words) || walk->window_words < memo->words)
		return 0;
	end = memo->places;
	barrier_var(end);
	for (i = 0; i < PLACES; i++) {
		if (i >= end)
			break;
		h = (h ^ walk->word[memo->where.place[i] & WINDOW_MASK]) * 0xff51afd7ed558ccdULL;
		h ^= h >> 32;
	}
	return h == memo->hash ? memo->id : 0;
}

/* `id`: of the native frames. */
__weak int remember_user(struct user_memo *memo, struct unwind_walk *walk, u64 ip, u64 bp, u64 id)
{
	u64 whole;

	if (!memo || !walk)
		return 0;
	memo->id = 0;
	memo->ip = 0;
	whole = joined_id(id, walk->python.hash);
	if (!walk->places || walk->places > PLACES || !bpf_map_lookup_elem(&known_stacks, &whole))
		return 0;
	if (walk->end == WALK_FAULT) /* unreadable memory may be readable the next time */
		return 0;
	memo->where = walk->where;
	memo->id = id;
	memo->ip = ip;
	memo->sp = walk->start;
	memo->bp = bp;
	memo->hash = walk->hash;
	memo->callers = open_callers(walk->tid);
	memo->version = walk->space.version;
	memo->generation = walk->missed ? unwind_generation : 0;
	memo->uses = 0;
	memo->words = walk->span;
	memo->places = walk->places;
	memo->end = walk->end;
	return 0;
}

/* Sends the walk's stack if it is new; `id`: of the native frames. Returns that of the whole one. */
__weak u64 send_user(struct unwind_walk *walk, struct stack_record *record, u64 id)
{
	if (!walk || !record)
		return 0;
	return send_stack(record, walk->frames & MAX_FRAMES, walk->python.words, joined_id(id, walk->python.hash));
}

/* The id of the whole stack, of which the native frames were recognised; 0 if its Python functions are new. */
__weak u64 recalled_stack(struct unwind_walk *walk, struct stack_record *record, u64 recalled)
{
	u64 whole;

	if (!walk || !record || !python_current(walk, record))
		return recalled;
	whole = joined_id(recalled, walk->python.hash);
	return bpf_map_lookup_elem(&known_stacks, &whole) ? whole : 0;
}

/* The id of the current task's user stack, starting at these registers. `cs`: its code segment. `lasting`: it waits,
 * and may wait there again. */
static __always_inline u64 walk_user(enum context context, u16 cs, u64 ip, u64 sp, u64 bp, u32 tgid, bool lasting,
				     struct stack_record *record, u8 *end)
{
	struct user_memo *memo = NULL;
	struct unwind_walk *walk;
	u64 id, whole, recalled = 0;
	u32 slot = context, generation;

	*end = WALK_COMPLETE;
	walk = bpf_map_lookup_elem(&walk_scratch, &slot);
	if (!walk)
		return 0;
	if (cs != USER_CS && cs != USER32_CS) {
		count(STACKS_FAILED);
		return 0;
	}
	if (!ip && !sp) /* a worker that the kernel created for the process (io_uring, vhost) */
		return 0;
	begin_walk(walk, record, ip, sp, bp, tgid, (u32)bpf_get_current_pid_tgid(), cs == USER32_CS);
	walk->caches = context;
	if (lasting && cs == USER_CS) {
		memo = memo_of(ip, sp, bp);
	} else {
		if (context != CONTEXT_SCHED)
			walk->reads = WINDOW_SMALL;
		walk->places = PLACES + 1; /* not needed */
	}
	if (memo)
		recalled = recall_user(memo, walk);
	if (recalled && ++memo->uses % user_memo_check) {
		whole = recalled_stack(walk, record, recalled);
		if (whole) {
			count(USER_MEMO_HITS);
			*end = memo->end;
			return whole;
		}
		recalled = 0;
	}
	generation = stacks_now();
	unwind_current(walk, record);
	record->end = walk->end;
	walk->end = end_of_walk(walk->tid, ip, walk->sp, walk->end, walk->missed);
	*end = walk->end;
	id = stack_hash(record, walk->frames);
	python_current(walk, record);
	if (recalled) {
		if (walk->missed) { /* a table has been evicted since: the memo is more complete */
			whole = recalled_stack(walk, record, recalled);
			if (whole) {
				*end = memo->end;
				return whole;
			}
		}
		count(USER_MEMO_CHECKS);
		/* If the memo was cut short, and the missing table is now loaded, it was not wrong. */
		if (recalled != id && !memo->generation)
			count(USER_MEMO_WRONG);
	}
	whole = send_user(walk, record, id);
	if (memo && recalled != id) {
		memo->stacks = generation;
		remember_user(memo, walk, ip, bp, id);
	}
	return whole;
}

/* The id of the user stack of `task`, the current one, which is in the kernel. */
static __always_inline u64 user_stack(enum context context, struct task_struct *task, u32 tgid, bool lasting,
				      struct stack_record *record, u8 *end)
{
	u64 ip, sp, bp;
	u16 cs;

	cs = task_registers(task_regs ? bpf_get_current_task_btf() : task, &ip, &sp, &bp);
	return walk_user(context, cs, ip, sp, bp, tgid, lasting, record, end);
}

#endif
