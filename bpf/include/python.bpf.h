/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The Python functions that a thread is in.
 *
 * CPython keeps a list of thread states per interpreter. The one of a thread has the address of the thread's control
 * block, which the kernel knows as the base of fs (glibc, musl: pthread_self()). From there the frames are a list, each
 * with its code object. A code object can be freed, and its memory used for another one: the checksum contains what
 * distinguishes code objects, and its version or the hash of its name's text.
 *
 * Like a step up a native stack, a step reads no memory itself. */
#ifndef STALLSCOPE_PYTHON_BPF_H
#define STALLSCOPE_PYTHON_BPF_H

#include "stack.bpf.h"
#include "unwind.bpf.h"
#include <bpf/bpf_core_read.h>

#define PYTHON_ROUNDS 640 /* reads: three per function, one per thread that is searched */
#define PYTHON_SOME 32
#define PYTHON_EAGER 32		  /* searches for a thread's state, before there is one only after a pause … */
#define PYTHON_PAUSE 100000000ULL /* ns */

SHARED const volatile bool python_frames;
/* Incremented by user space with each process in which it found an interpreter; 0: none yet. */
SHARED u32 python_generation;

/* Preallocated: see unwind_spaces. */
struct python_spaces {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct python_space);
};
SHARED struct python_spaces python_spaces SEC(".maps");

struct python_thread {
	u64 state; /* address; 0: it has none */
	u64 fs;
	u64 looked; /* when it was searched for */
	u64 searches;
};

/* By thread. A wrong entry does no harm: a thread state is checked each time. */
struct python_threads {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct python_thread);
};
SHARED struct python_threads python_threads SEC(".maps");

enum python_stage {
	PYTHON_CACHED, /* the thread's state that was found before */
	PYTHON_INTERPRETER,
	PYTHON_THREADS,
	PYTHON_THREAD,
	PYTHON_INNER, /* what the thread's state points to instead of a frame */
	PYTHON_FRAME,
	PYTHON_OBJECT, /* the code object */
	PYTHON_NAME,
};

static __always_inline u64 python_word(const struct python_walk *python, u32 offset)
{
	return python->word[(offset >> 3) & (PYTHON_WINDOW / 8 - 1)];
}

static __always_inline u32 python_int(const struct python_walk *python, u32 offset)
{
	return python_word(python, offset) >> (offset & 4) * 8;
}

static __always_inline u8 python_byte(const struct python_walk *python, u32 offset)
{
	return python_word(python, offset) >> (offset & 7) * 8;
}

static __always_inline u64 python_mix(u64 hash, u64 word)
{
	hash = (hash ^ word) * 0xff51afd7ed558ccdULL;
	return hash ^ hash >> 32;
}

static __always_inline int python_reads(struct python_walk *python, u64 address, u32 bytes, u8 stage)
{
	python->want = address;
	python->bytes = bytes;
	python->stage = stage;
	return WALK_READS;
}

static __always_inline void put_python(struct unwind_walk *walk, struct stack_record *record, u64 word)
{
	u32 place = walk->frames + walk->python.words;

	record->frames[place & STACK_MASK] = word;
	walk->python.words++;
}

/* Ends the walk early: the stack says so. */
static __always_inline int cut_python(struct unwind_walk *walk, struct stack_record *record, u32 end)
{
	put_python(walk, record, PYTHON_CUT | end);
	walk->python.hash = python_mix(walk->python.hash, end);
	count(end == PYTHON_TOO_DEEP ? PYTHON_STACKS_CUT : PYTHON_STACKS_FAILED);
	return WALK_DONE;
}

static __always_inline int search_python(struct python_walk *python)
{
	return python_reads(python, python->space.interpreters, sizeof(u64), PYTHON_INTERPRETER);
}

/* Notes the result of a search; `state`: 0 for none. */
static __always_inline void note_python(struct unwind_walk *walk, u64 state)
{
	struct python_thread note = { .state = state, .fs = walk->python.fs };
	u32 tid = walk->tid;

	note.looked = bpf_ktime_get_ns();
	note.searches = walk->python.searches + 1;
	bpf_map_update_elem(&python_threads, &tid, &note, BPF_ANY);
}

/* The next thread state, or the first one of the next interpreter. */
static __always_inline int next_python_thread(struct python_walk *python, u64 next)
{
	if (next) {
		python->thread = next;
		return python_reads(python, next, python->space.thread_bytes, PYTHON_THREAD);
	}
	return python_reads(python, python->interpreter + python->space.interpreter_next, sizeof(u64),
			    PYTHON_INTERPRETER);
}

static __always_inline int enter_python(struct python_walk *python)
{
	u64 frame = python_word(python, python->space.thread_frame);

	if (!frame) /* it runs no Python function */
		return WALK_DONE;
	if (python->space.frame_in != NO_STEP)
		return python_reads(python, frame + python->space.frame_in, sizeof(u64), PYTHON_INNER);
	return python_reads(python, frame, python->space.frame_bytes, PYTHON_FRAME);
}

static __always_inline int python_frame(struct unwind_walk *walk, struct stack_record *record)
{
	struct python_walk *python = &walk->python;
	u32 last;

	python->back = python_word(python, python->space.frame_back);
	python->entry = python->space.entry == ENTRY_ALWAYS;
	if (python->space.entry != ENTRY_ALWAYS) {
		u8 byte = python_byte(python, python->space.frame_entry);

		if (python->space.entry == ENTRY_FLAG) {
			python->entry = byte == 1;
		} else if (byte >= ENTRY_OWNER) {
			/* The function just before was called by C code. */
			last = walk->frames + python->words - 1;
			if (python->functions) {
				record->frames[last & STACK_MASK] |= 1;
				python->hash = python_mix(python->hash, 1);
			}
			if (!python->back)
				return WALK_DONE;
			return python_reads(python, python->back, python->space.frame_bytes, PYTHON_FRAME);
		}
	}
	if (python->functions >= MAX_PYTHON)
		return cut_python(walk, record, PYTHON_TOO_DEEP);
	python->code = python_word(python, python->space.frame_code) & PYTHON_ADDRESS & ~7ULL; /* 3.14: with tags */
	if (python->space.instruction == INSTRUCTION_AT)
		python->instruction =
			python_word(python, python->space.frame_instruction) - python->code - python->space.code_first;
	else
		python->instruction = python_int(python, python->space.frame_instruction)
				      << (python->space.instruction == INSTRUCTION_WORD);
	return python_reads(python, python->code, python->space.code_bytes, PYTHON_OBJECT);
}

/* `last`: what the checksum lacks. */
static __always_inline int python_function(struct unwind_walk *walk, struct stack_record *record, u64 last)
{
	struct python_walk *python = &walk->python;
	u64 second;

	python->checksum = python_mix(python->checksum, last);
	second = python->checksum << 32 | (python->instruction & 0x7fffffff) << 1 | python->entry;
	put_python(walk, record, PYTHON_CODE | python->code);
	put_python(walk, record, second);
	python->functions++;
	python->hash = python_mix(python_mix(python->hash, python->code), second);
	if (!python->back)
		return WALK_DONE;
	return python_reads(python, python->back, python->space.frame_bytes, PYTHON_FRAME);
}

/* One step; what it wanted to read is in the window. */
__weak int python_step(struct unwind_walk *walk, struct stack_record *record)
{
	struct python_walk *python;
	u64 word;

	if (!walk || !record)
		return WALK_DONE;
	python = &walk->python;
	word = python->word[0];
	switch (python->stage) {
	case PYTHON_CACHED:
		if (python_word(python, python->space.thread_id) != python->fs)
			return search_python(python);
		return enter_python(python);
	case PYTHON_INTERPRETER:
		if (!word) {
			note_python(walk, 0);
			return WALK_DONE;
		}
		python->interpreter = word;
		return python_reads(python, word + python->space.interpreter_threads, sizeof(u64), PYTHON_THREADS);
	case PYTHON_THREADS:
		return next_python_thread(python, word);
	case PYTHON_THREAD:
		if (python_word(python, python->space.thread_id) != python->fs)
			return next_python_thread(python, python_word(python, python->space.thread_next));
		note_python(walk, python->thread);
		return enter_python(python);
	case PYTHON_INNER:
		return word ? python_reads(python, word, python->space.frame_bytes, PYTHON_FRAME) : WALK_DONE;
	case PYTHON_FRAME:
		return python_frame(walk, record);
	case PYTHON_OBJECT:
		word = python_word(python, python->space.code_name);
		python->checksum = python_mix(python->space.salt, word);
		python->checksum = python_mix(python->checksum, python_word(python, python->space.code_file));
		python->checksum = python_mix(python->checksum, python_word(python, python->space.code_lines));
		python->checksum = python_mix(python->checksum, python_int(python, python->space.code_line));
		if (python->space.code_version != NO_STEP)
			return python_function(walk, record, python_int(python, python->space.code_version));
		return python_reads(python, word + python->space.name_hash, sizeof(u64), PYTHON_NAME);
	case PYTHON_NAME:
		return python_function(walk, record, word);
	}
	return WALK_DONE;
}

/* What was wanted cannot be read. */
__weak int python_fault(struct unwind_walk *walk, struct stack_record *record)
{
	if (!walk || !record)
		return WALK_DONE;
	if (walk->python.stage == PYTHON_CACHED)
		return search_python(&walk->python);
	if (walk->python.stage < PYTHON_INNER) {
		note_python(walk, 0);
		return WALK_DONE;
	}
	return cut_python(walk, record, PYTHON_UNREADABLE);
}

/* Whether the process of the walk has an interpreter, and this thread may be in it. `fs`: of the thread. The native
 * frames are in the record by now. */
__weak int begin_python(struct unwind_walk *walk, struct stack_record *record, u64 fs)
{
	struct python_space *space;
	struct python_thread *known;
	struct python_walk *python;
	u32 id;

	if (!walk || !record || !fs)
		return WALK_DONE;
	python = &walk->python;
	python->words = 0;
	python->hash = 0;
	id = walk->tgid;
	space = bpf_map_lookup_elem(&python_spaces, &id);
	if (!space)
		return WALK_DONE;
	python->space = *space;
	python->fs = fs;
	python->functions = 0;
	python->searches = 0;
	put_python(walk, record, PYTHON_PROCESS | id);
	id = walk->tid;
	known = bpf_map_lookup_elem(&python_threads, &id);
	if (!known || known->fs != fs)
		return search_python(python);
	python->searches = known->searches;
	if (known->state)
		return python_reads(python, known->state, python->space.thread_bytes, PYTHON_CACHED);
	if (known->searches > PYTHON_EAGER && bpf_ktime_get_ns() - known->looked < PYTHON_PAUSE)
		return WALK_DONE;
	return search_python(python);
}

/* Also the header goes if there is no function. */
static __always_inline u32 end_python(struct unwind_walk *walk)
{
	if (walk->python.words <= 1)
		walk->python.words = 0;
	return walk->python.words;
}

__weak int python_current_some(struct unwind_walk *walk, struct stack_record *record)
{
	int next = WALK_READS;
	u32 bytes, i;

	if (!walk || !record)
		return WALK_DONE;
	for (i = 0; i < PYTHON_SOME && next == WALK_READS; i++) {
		bytes = walk->python.bytes;
		if (bytes > PYTHON_WINDOW)
			bytes = PYTHON_WINDOW;
		if (bpf_probe_read_user(walk->python.word, bytes, (void *)walk->python.want))
			next = python_fault(walk, record);
		else
			next = python_step(walk, record);
	}
	return next;
}

__weak int python_current_rounds(struct unwind_walk *walk, struct stack_record *record)
{
	u32 i;

	if (!walk || !record)
		return WALK_DONE;
	for (i = 0; i < PYTHON_ROUNDS / PYTHON_SOME; i++)
		if (python_current_some(walk, record) != WALK_READS)
			return WALK_DONE;
	return WALK_READS;
}

/* Adds the Python functions that the current task is in to the record, behind the native frames; returns their words. */
__weak u32 python_current(struct unwind_walk *walk, struct stack_record *record)
{
	struct task_struct *task;

	if (!walk || !record)
		return 0;
	walk->python.words = 0;
	walk->python.hash = 0;
	if (!python_frames || !python_generation)
		return 0;
	task = (void *)bpf_get_current_task();
	if (begin_python(walk, record, BPF_CORE_READ(task, thread.fsbase)) == WALK_READS &&
	    python_current_rounds(walk, record) == WALK_READS)
		cut_python(walk, record, PYTHON_UNREADABLE);
	return end_python(walk);
}

#endif
