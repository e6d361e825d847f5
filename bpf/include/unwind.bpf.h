/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* User stacks without frame pointers: one step from a frame to its caller, by the rows of the code's unwind table.
 *
 * A step reads no user memory itself: it works on a window of the stack, and reports a word that it needs from
 * outside. So the same step serves the current task and, with memory that user space has read, any other. It is a
 * global function: the verifier checks it once, and the loop around it needs no bpf_loop(). */
#ifndef STALLSCOPE_UNWIND_BPF_H
#define STALLSCOPE_UNWIND_BPF_H

#include "open_calls.bpf.h"
#include "python.h"
#include "stack.bpf.h"
#include "unwind.h"
#include <bpf/bpf_core_read.h>

#define WINDOW_WORDS 2048
#define WINDOW_FIRST 192 /* words that are read at a time, unless more are known to be needed */
#define WINDOW_SMALL 8	 /* … for the frames' own words only, few of which are in a cache */
#define WINDOW_MASK (WINDOW_WORDS - 1)
#define PLACES 128
#define USER_PAGE 4096
/* For more than MAX_FRAMES frames, each with at most three words outside the window. */
#define WALK_ROUNDS 384
#define SOME_ROUNDS 16
#define THREAD_SIZE 16384
#define USER_CS 0x33		      /* __USER_CS, arch/x86/include/asm/segment.h */
#define USER32_CS 0x23		      /* __USER32_CS */
#define FRAME_POINTER_REACH (1 << 20) /* maximum distance to the callee's frame, if only rbp is known */
#define POPS_AND_RETURN 0xc3595a5dU   /* pop %ebp; pop %edx; pop %ecx; ret: behind the system call of a 32-bit vDSO */

struct shard_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	/* Sizes, not types: clang gives only the names of an inner map's types. */
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct shard));
};

struct shard_maps {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, SHARDS);
	__type(key, u32);
	__array(values, struct shard_map);
};
SHARED struct shard_maps unwind_shards SEC(".maps");

struct table_array {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, TABLES);
	__type(key, u32);
	__type(value, struct unwind_table);
};
SHARED struct table_array unwind_tables SEC(".maps");

/* By process id. Preallocated: the kernel logs a warning for raw tracepoints that use another hash. */
struct space_hash {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, u32);
	__type(value, struct unwind_space);
};
SHARED struct space_hash unwind_spaces SEC(".maps");

/* What a walk missed: a process id whose mappings are not known (any more), or WANTED_TABLE | a table's number. */
#define WANTED_TABLE (1ULL << 32)
struct wanted_hash {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, u64);
	__type(value, u32);
};
SHARED struct wanted_hash unwind_wanted SEC(".maps");

/* A cache of rules: a thread has the same callers again and again, and each search of the tables touches uncached
 * memory. Rules of interrupted code are found by its page, because a rule often covers much code; rules of callers by
 * address. */
#define RULES 512
struct found_rule {
	u64 from; /* start of the row's range, within a page of the table */
	u64 row;
	u64 bias;    /* of the mapping */
	u32 version; /* of the process's mappings: unique among processes */
	u32 size;
	u32 table;
	u32 epoch; /* in which the table was last marked as used */
};

struct rule_cache {
	struct found_rule of[RULES];
};

struct rule_caches {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct rule_cache);
};
SHARED struct rule_caches rule_caches SEC(".maps");

SHARED u32 unwind_epoch;
SHARED u32 unwind_generation; /* incremented when tables were loaded; never 0 */

enum walk_next {
	WALK_DONE,
	WALK_GOES_ON,
	WALK_READS, /* after reading the word at `want` */
};

/* What the walk is about to do. */
enum walk_stage {
	STAGE_RULE, /* find the row for pc */
	STAGE_CFA,  /* read the CFA from the word at `at` */
	STAGE_RBP,  /* read the caller's rbp from the word at `rbp_at` */
	STAGE_RETURN,
};

/* Positions of words, counted from the innermost frame's sp up. */
struct places {
	u16 place[PLACES];
};

/* A walk along the Python functions: see python.bpf.h. */
struct python_walk {
	u64 want; /* address of the `bytes` that a step needs */
	u64 fs;
	u64 interpreter;
	u64 thread;
	u64 back; /* the calling function's frame */
	u64 code;
	u64 file;
	u64 instruction;
	u64 checksum;
	u64 hash; /* of the functions */
	u64 searches;
	/* The last code object, and the last file's name: functions that follow each other often have the same. */
	u64 last_code;
	u64 last_checksum;
	u64 last_file;
	u64 last_text;
	u64 block; /* address of what is in the block */
	u32 block_bytes;
	u32 frame; /* index of the frame's first word, in `word` … */
	u32 bytes;
	u32 words; /* behind the native frames in the record */
	u32 functions;
	u32 text; /* bytes of a text that are in its hash */
	u8 stage; /* enum python_stage */
	u8 entry;
	u8 on_stack;  /* … or in the window of the native stack */
	u8 to_block;  /* what is read belongs there */
	u8 more;      /* the next step needs no read */
	u8 other;     /* they are another thread's, which may run meanwhile */
	u8 several;   /* interpreters */
	u8 searching; /* the thread's state */
	u8 found;     /* at least one */
	struct python_space space;
	u64 word[PYTHON_WORDS]; /* an object; the block of frames from PYTHON_BLOCK_AT on */
};

struct unwind_walk {
	u64 pc;
	u64 sp;
	u64 bp;
	u64 cfa;
	u64 at;
	u64 rbp_at;
	u64 start; /* sp of the innermost frame */
	u64 hash;  /* of the words that the walk depends on */
	u64 map_start;
	u64 map_end;
	u64 map_bias;
	u64 window; /* address of word[0] */
	u64 want;   /* address of the word that a step needs */
	u32 window_words;
	u32 map_table;
	u32 tgid;
	u32 frames;
	u32 end; /* enum walk_end */
	u32 places;
	u32 span;  /* words from `start` up to the last place */
	u32 reads; /* words that are read at a time */
	u32 from;  /* the row that was found applies from here to `until` */
	u32 until;
	u32 tid;
	u32 caches; /* index of its rule_cache; out of range: none */
	u8 stage;
	u8 exact;      /* pc was interrupted, not returned to */
	u8 signal;     /* the current rule is CFA_SIGNAL */
	u8 add;	       /* added to what STAGE_CFA reads */
	u8 rbp_lost;   /* rbp is not known from here on */
	u8 by_pointer; /* the current rule is a guess from rbp */
	u8 guessed;    /* at least one rule was a guess */
	u8 missed;     /* a mapping or a table was missing, but may still come */
	u8 narrow;     /* 32-bit code */
	struct unwind_space space;
	struct places where; /* of the words in `hash` */
	struct python_walk python;
	u64 word[WINDOW_WORDS];
};

struct walk_scratch {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct unwind_walk);
};
SHARED struct walk_scratch walk_scratch SEC(".maps");

/* For scope_walk, like iter_scratch. */
struct iter_walk {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct unwind_walk);
};
SHARED struct iter_walk iter_walk SEC(".maps");

static __always_inline struct shard *shard_of(u32 word)
{
	u32 number = word >> SHARD_SHIFT, zero = 0;
	void *shard = bpf_map_lookup_elem(&unwind_shards, &number);

	return shard ? bpf_map_lookup_elem(shard, &zero) : NULL;
}

static __always_inline void want(u64 what)
{
	u32 one = 1;

	if (!bpf_map_lookup_elem(&unwind_wanted, &what))
		bpf_map_update_elem(&unwind_wanted, &what, &one, BPF_NOEXIST);
}

/* Finds the mapping that holds `pc`. */
__weak int find_mapping(struct unwind_walk *walk, u64 pc)
{
	u32 first, low = 0, count, half, at, i;
	struct shard *shard;

	if (!walk)
		return 0;
	walk->map_table = TABLE_UNMAPPED;
	walk->map_start = 0;
	walk->map_end = 0;
	count = walk->space.count;
	first = walk->space.first;
	shard = shard_of(first);
	if (!shard || !count)
		return 0;
	if (pc < shard->word[first & (SHARD_WORDS - 1)])
		return 0;
	for (i = 0; i < SHARD_SHIFT; i++) {
		half = count >> 1;
		if (!half)
			break;
		at = first + (low + half) * MAPPING_WORDS;
		if (shard->word[at & (SHARD_WORDS - 1)] <= pc) {
			low += half;
			count -= half;
		} else {
			count = half;
		}
	}
	at = first + low * MAPPING_WORDS;
	walk->map_start = shard->word[at & (SHARD_WORDS - 1)];
	walk->map_bias = shard->word[(at + 1) & (SHARD_WORDS - 1)];
	walk->map_table = shard->word[(at + 2) & (SHARD_WORDS - 1)];
	walk->map_end = ~0ULL;
	if (low + 1 < walk->space.count)
		walk->map_end = shard->word[(at + MAPPING_WORDS) & (SHARD_WORDS - 1)];
	return 0;
}

/* Returned instead of a row; as rows, both are CFA_GAP. */
#define NOT_IN_MEMORY 1
#define NO_TABLE 2

/* The row for the place `pc` of a chunk; 0, which is a CFA_GAP row, if there is none. */
__weak u64 find_row(u32 number, u32 pc, struct unwind_walk *walk)
{
	u32 page = pc >> PAGE_SHIFT, row, count, half, end, i;
	struct unwind_table *table = bpf_map_lookup_elem(&unwind_tables, &number);
	struct shard *shard;
	u64 entry;

	if (!table || !walk)
		return 0;
	if (page >= table->pages) {
		if (table->pages || table->empty)
			return 0;
		want(WANTED_TABLE | number);
		return NOT_IN_MEMORY;
	}
	if (table->used != unwind_epoch)
		table->used = unwind_epoch;
	row = table->index + page;
	shard = shard_of(row);
	if (!shard)
		return 0;
	entry = shard->word[row & (SHARD_WORDS - 1)];
	row = entry;
	count = entry >> 32;
	shard = shard_of(row);
	if (!shard || !count)
		return 0;
	end = row + count;
	for (i = 0; i < PAGE_SHIFT + 1; i++) {
		half = count >> 1;
		if (!half)
			break;
		if ((u32)shard->word[(row + half) & (SHARD_WORDS - 1)] <= pc) {
			row += half;
			count -= half;
		} else {
			count = half;
		}
	}
	entry = shard->word[row & (SHARD_WORDS - 1)];
	walk->from = page << PAGE_SHIFT;
	if (walk->from < (u32)entry)
		walk->from = entry;
	walk->until = (page + 1) << PAGE_SHIFT;
	if (row + 1 < end)
		walk->until = shard->word[(row + 1) & (SHARD_WORDS - 1)];
	return (u32)entry <= pc ? entry : 0;
}

static __always_inline int stop_walk(struct unwind_walk *walk, u32 end)
{
	/* A guess from rbp skips the callers of code without frame pointers. */
	walk->end = end == WALK_COMPLETE && walk->missed ? WALK_NO_TABLE : end;
	return WALK_DONE;
}

/* Returns whether the word at `address` is in the window; if so, stores it in `value` and adds it to the memo. */
static __always_inline bool read_word(struct unwind_walk *walk, u64 address, u64 *value)
{
	u64 index = (address - walk->window) >> 3;
	u64 place = (address - walk->start) >> 3;

	if (address < walk->window || index >= walk->window_words) {
		walk->want = address;
		return false;
	}
	*value = walk->word[index & WINDOW_MASK];
	if (address >= walk->start && place < WINDOW_WORDS && walk->places < PLACES) {
		walk->where.place[walk->places & (PLACES - 1)] = place;
		walk->places++;
		if (place >= walk->span)
			walk->span = place + 1;
		walk->hash = (walk->hash ^ *value) * 0xff51afd7ed558ccdULL;
		walk->hash ^= walk->hash >> 32;
	} else {
		walk->places = PLACES + 1; /* too far, or too many: not for the memo */
	}
	return true;
}

/* Without a row: assumes that the code keeps frame pointers. */
static __always_inline int rule_by_pointer(struct unwind_walk *walk, u32 otherwise)
{
	if (walk->rbp_lost || (walk->bp & 7) || walk->bp < walk->sp || walk->bp - walk->sp > FRAME_POINTER_REACH)
		return stop_walk(walk, otherwise);
	walk->guessed = 1;
	walk->by_pointer = 1;
	walk->cfa = walk->bp + 16;
	walk->rbp_at = walk->bp;
	walk->stage = STAGE_RBP;
	return WALK_GOES_ON;
}

static __always_inline struct found_rule *place_of_rule(struct unwind_walk *walk, u64 pc)
{
	u32 slot = walk->caches;
	struct rule_cache *cache = bpf_map_lookup_elem(&rule_caches, &slot);
	u32 hash = (u32)((walk->exact ? pc >> PAGE_SHIFT : pc) ^ walk->space.version) * 0x9e3779b1U;

	return cache ? &cache->of[(hash >> 16) & (RULES - 1)] : NULL;
}

/* Marks a table as used: unused tables are evicted. */
static __always_inline void keep_table(struct found_rule *found)
{
	struct unwind_table *table;
	u32 number = found->table;

	if (found->epoch == unwind_epoch)
		return;
	found->epoch = unwind_epoch;
	table = bpf_map_lookup_elem(&unwind_tables, &number);
	if (table)
		table->used = unwind_epoch;
}

/* The row for pc, or NOT_IN_MEMORY or NO_TABLE. `bias`: pc minus its place in the table. */
static __always_inline u64 search_rule(struct unwind_walk *walk, u64 pc, u64 *bias)
{
	struct found_rule *found = place_of_rule(walk, pc);
	u64 row;

	if (found && pc - found->from < found->size && found->version == walk->space.version) {
		keep_table(found);
		*bias = found->bias;
		return found->row;
	}
	if (pc < walk->map_start || pc >= walk->map_end)
		find_mapping(walk, pc);
	*bias = walk->map_bias;
	if (walk->map_table < TABLE_FIRST)
		return NO_TABLE;
	row = find_row(walk->map_table, pc - walk->map_bias, walk);
	if (found && row > NO_TABLE) {
		found->from = walk->from + walk->map_bias;
		found->size = walk->until - walk->from;
		found->row = row;
		found->bias = walk->map_bias;
		found->version = walk->space.version;
		found->table = walk->map_table;
		found->epoch = unwind_epoch;
	}
	return row;
}

/* Chooses the rule for pc: sets cfa or at, rbp_at, and the next stage. */
static __always_inline int choose_rule(struct unwind_walk *walk)
{
	u64 pc = walk->exact ? walk->pc : walk->pc - 1;
	u32 kind, rbp_kind, place;
	s64 cfa_offset, rbp_offset;
	u64 row, bias;

	walk->by_pointer = 0;
	walk->signal = 0;
	row = search_rule(walk, pc, &bias);
	if (row == NO_TABLE) {
		if (walk->map_table == TABLE_UNMAPPED) {
			walk->missed = 1;
			want(walk->tgid);
		}
		return rule_by_pointer(walk, WALK_NO_TABLE);
	}
	place = pc - bias;
	if (row == NOT_IN_MEMORY)
		walk->missed = 1;
	kind = (row >> 56) & 15;
	rbp_kind = (row >> 60) & 7;
	cfa_offset = (s64)(__s16)(row >> 32) * 8;
	rbp_offset = (s64)(__s8)(row >> 48) * 8;
	if (kind == CFA_END)
		return stop_walk(walk, WALK_COMPLETE);
	if (kind == CFA_GAP || kind == CFA_UNKNOWN || kind > CFA_SIGNAL)
		return rule_by_pointer(walk, row == NOT_IN_MEMORY ? WALK_NO_TABLE : WALK_NO_RULE);
	if (kind == CFA_RBP || kind == CFA_RBP_DEREF || kind == CFA_RBP_DEREF_8) {
		if (walk->rbp_lost)
			return stop_walk(walk, WALK_NO_RULE);
		walk->at = walk->bp + cfa_offset;
	} else if (kind == CFA_PLT) {
		walk->at = walk->sp + ((place & 15) >= (u64)(cfa_offset >> 3) ? 16 : 8);
	} else {
		walk->at = walk->sp + cfa_offset;
	}
	walk->signal = kind == CFA_SIGNAL;
	walk->add = kind == CFA_RSP_DEREF_8 || kind == CFA_RBP_DEREF_8 ? 8 : 0;
	walk->cfa = walk->at;
	/* If rbp is relative to a CFA that is still to be read, STAGE_CFA adds the CFA. */
	walk->rbp_at = 0;
	if (rbp_kind == RBP_AT_RSP)
		walk->rbp_at = walk->sp + rbp_offset;
	else if (rbp_kind == RBP_AT_RBP)
		walk->rbp_at = walk->bp + rbp_offset;
	else if (rbp_kind == RBP_UNKNOWN)
		walk->rbp_lost = 1;
	if (kind == CFA_RSP || kind == CFA_RBP || kind == CFA_PLT) {
		if (rbp_kind == RBP_AT_CFA)
			walk->rbp_at = walk->cfa + rbp_offset;
		walk->stage = walk->rbp_at ? STAGE_RBP : STAGE_RETURN;
		return WALK_GOES_ON;
	}
	if (rbp_kind == RBP_AT_CFA)
		walk->rbp_at = rbp_offset | 1; /* odd: not an address yet */
	walk->stage = STAGE_CFA;
	return WALK_GOES_ON;
}

/* Like read_word(), for what the memo need not contain. */
static __always_inline bool peek_word(struct unwind_walk *walk, u64 address, u64 *value)
{
	u64 index = (address - walk->window) >> 3;

	if (address < walk->window || index >= walk->window_words) {
		walk->want = address;
		return false;
	}
	*value = walk->word[index & WINDOW_MASK];
	return true;
}

/* The eight bytes at any address. What lies beyond the end of readable memory is 0. */
static __always_inline bool peek_bytes(struct unwind_walk *walk, u64 address, u64 *value)
{
	u64 first = address & ~7ULL, low = 0, high = 0;
	u32 shift = (address & 7) * 8;

	if (!peek_word(walk, first, &low))
		return false;
	if (shift && !peek_word(walk, first + 8, &high) && walk->window != first) {
		walk->want = first;
		return false;
	}
	*value = shift ? low >> shift | high << (64 - shift) : low;
	return true;
}

/* Whether a call ends after these eight bytes: E8, or FF with 2 in the middle bits of the next byte. */
static __always_inline bool ends_with_call(u64 bytes)
{
	return (bytes >> 24 & 0xff) == 0xe8 || (bytes >> 48 & 0x38ff) == 0x10ff || (bytes >> 40 & 0x38ff) == 0x10ff ||
	       (bytes >> 32 & 0x38ff) == 0x10ff || (bytes >> 16 & 0x38ff) == 0x10ff || (bytes >> 8 & 0x38ff) == 0x10ff;
}

/* One step in 32-bit code, by frame pointers: there are no tables for it. What is no return address ends the walk. */
__weak int narrow_step(struct unwind_walk *walk, struct stack_record *record)
{
	u64 bytes = 0, saved = 0;
	u32 frames;

	if (!walk || !record)
		return WALK_DONE;
	walk->end = WALK_NARROW;
	if (walk->stage == STAGE_RULE) {
		if (walk->exact && !peek_bytes(walk, walk->pc, &bytes))
			return WALK_READS;
		if ((u32)bytes == POPS_AND_RETURN) {
			walk->rbp_at = walk->sp; /* of ebp, edx, ecx and the return address */
			walk->at = walk->sp + 12;
		} else {
			if (walk->bp & 3 || walk->bp < walk->sp || walk->bp - walk->sp > FRAME_POINTER_REACH)
				return WALK_DONE;
			walk->rbp_at = walk->bp;
			walk->at = walk->bp + 4;
		}
		walk->stage = STAGE_RBP;
	}
	if (walk->stage == STAGE_RBP) {
		if (!peek_bytes(walk, walk->rbp_at, &saved))
			return WALK_READS;
		if (!peek_bytes(walk, walk->at, &bytes))
			return WALK_READS;
		walk->cfa = walk->at + 4;
		walk->bp = (u32)saved;
		walk->at = (u32)bytes;
		walk->stage = STAGE_RETURN;
	}
	find_mapping(walk, walk->at);
	if (walk->map_table == TABLE_UNMAPPED) {
		want(walk->tgid);
		return WALK_DONE;
	}
	if (!peek_bytes(walk, walk->at - 8, &bytes))
		return WALK_READS;
	if (!ends_with_call(bytes))
		return WALK_DONE;
	frames = walk->frames;
	if (frames >= MAX_FRAMES) {
		walk->end = WALK_TOO_DEEP;
		return WALK_DONE;
	}
	record->frames[frames & (MAX_FRAMES)] = walk->at;
	walk->frames = frames + 1;
	walk->pc = walk->at;
	walk->sp = walk->cfa;
	walk->exact = 0;
	walk->stage = STAGE_RULE;
	return WALK_GOES_ON;
}

/* One step, or the part of it whose words are in the window. */
__weak int unwind_step(struct unwind_walk *walk, struct stack_record *record)
{
	u64 value = 0, at;
	u32 frames;

	if (!walk || !record)
		return WALK_DONE;
	if (walk->narrow)
		return narrow_step(walk, record);
	if (walk->stage == STAGE_RULE && choose_rule(walk) == WALK_DONE)
		return WALK_DONE;
	if (walk->stage == STAGE_CFA) {
		if (!read_word(walk, walk->at, &value))
			return WALK_READS;
		walk->cfa = value + walk->add;
		if (walk->rbp_at & 1)
			walk->rbp_at = walk->cfa + walk->rbp_at - 1;
		walk->stage = walk->rbp_at ? STAGE_RBP : STAGE_RETURN;
	}
	if (walk->cfa & 7 || (walk->cfa <= walk->sp && !walk->signal))
		return stop_walk(walk, WALK_LOST);
	if (walk->stage == STAGE_RBP) {
		if (!read_word(walk, walk->rbp_at, &value))
			return WALK_READS;
		walk->stage = STAGE_RETURN;
		walk->bp = value;
		walk->rbp_lost = 0;
	}
	at = walk->signal ? walk->at + 8 : walk->cfa - 8;
	if (!read_word(walk, at, &value))
		return WALK_READS;
	if (measure_calls && is_trampoline(value))
		value = replaced_return(walk->tid, at, value);
	if (!value)
		return stop_walk(walk, walk->guessed ? WALK_NO_TABLE : WALK_COMPLETE);
	frames = walk->frames;
	if (frames >= MAX_FRAMES)
		return stop_walk(walk, WALK_TOO_DEEP);
	record->frames[frames & (MAX_FRAMES)] = value;
	walk->frames = frames + 1;
	walk->pc = value;
	walk->sp = walk->cfa;
	walk->exact = walk->signal;
	walk->stage = STAGE_RULE;
	return WALK_GOES_ON;
}

/* The code segment (USER_CS, USER32_CS, or another) and ip, sp and bp of a task that is in the kernel. */
static __always_inline u16 task_registers(struct task_struct *task, u64 *ip, u64 *sp, u64 *bp)
{
	struct pt_regs *regs;
	u16 cs;

	if (task_regs) {
		regs = (struct pt_regs *)bpf_task_pt_regs(task);
		cs = regs->cs;
		*ip = regs->ip;
		*sp = regs->sp;
		*bp = regs->bp;
	} else { /* dd6e10fbd9fb (5.15) brought the helper; it computes the same */
		regs = BPF_CORE_READ(task, stack) + THREAD_SIZE - bpf_core_type_size(struct pt_regs);
		cs = BPF_CORE_READ(regs, cs);
		*ip = BPF_CORE_READ(regs, ip);
		*sp = BPF_CORE_READ(regs, sp);
		*bp = BPF_CORE_READ(regs, bp);
	}
	return cs;
}

/* Initialises a walk from the saved registers. */
static __always_inline void begin_walk(struct unwind_walk *walk, struct stack_record *record, u64 ip, u64 sp, u64 bp,
				       u32 tgid, u32 tid, bool narrow)
{
	struct unwind_space *space = bpf_map_lookup_elem(&unwind_spaces, &tgid);

	walk->pc = ip;
	walk->sp = sp;
	walk->bp = bp;
	walk->start = sp;
	walk->hash = 0;
	walk->map_start = 0;
	walk->map_end = 0;
	walk->window = 0;
	walk->window_words = 0;
	walk->tgid = tgid;
	walk->tid = tid;
	walk->reads = WINDOW_FIRST;
	walk->caches = CONTEXTS;
	walk->frames = 1;
	walk->end = WALK_TOO_DEEP;
	walk->places = 0;
	walk->span = 0;
	walk->stage = STAGE_RULE;
	walk->exact = 1;
	walk->rbp_lost = 0;
	walk->guessed = 0;
	walk->missed = 0;
	walk->narrow = narrow;
	if (narrow) {
		walk->reads = WINDOW_SMALL; /* stack and code in turn */
		walk->places = PLACES + 1;
	}
	walk->space.count = 0;
	walk->space.version = 0;
	if (space)
		walk->space = *space;
	record->frames[0] = ip;
}

/* Reads the window from `walk->want` on; `words` if possible, else up to the end of the page. */
static __always_inline bool read_window(struct unwind_walk *walk, u32 words)
{
	u64 address = walk->want;
	u32 bytes = words * sizeof(u64);

	walk->window = address;
	walk->window_words = 0;
	if (address & 7)
		return false;
	if (bytes > sizeof(walk->word))
		bytes = sizeof(walk->word);
	if (bpf_probe_read_user(walk->word, bytes, (void *)address)) {
		bytes = USER_PAGE - (address & (USER_PAGE - 1));
		if (bytes > sizeof(walk->word))
			bytes = sizeof(walk->word);
		if (bpf_probe_read_user(walk->word, bytes, (void *)address))
			return false;
	}
	walk->window_words = bytes / sizeof(u64);
	return true;
}

/* One round of a walk up the current task's stack; returns whether it was the last. */
__weak int unwind_current_round(struct unwind_walk *walk, struct stack_record *record)
{
	int next;

	if (!walk || !record)
		return 1;
	next = unwind_step(walk, record);
	if (next == WALK_READS && !read_window(walk, walk->reads)) {
		walk->end = WALK_FAULT;
		return 1;
	}
	return next == WALK_DONE;
}

/* Some rounds: the verifier checks two nested short loops faster than one long loop. */
__weak int unwind_current_some(struct unwind_walk *walk, struct stack_record *record)
{
	u32 i;

	if (!walk || !record)
		return 1;
	for (i = 0; i < SOME_ROUNDS; i++)
		if (unwind_current_round(walk, record))
			return 1;
	return 0;
}

__weak int unwind_current(struct unwind_walk *walk, struct stack_record *record)
{
	u32 i;

	if (!walk || !record)
		return 0;
	for (i = 0; i < WALK_ROUNDS / SOME_ROUNDS; i++)
		if (unwind_current_some(walk, record))
			break;
	return 0;
}

#endif
