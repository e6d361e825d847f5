/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The Python functions that a thread is in.
 *
 * CPython keeps a list of thread states per interpreter. The one of a thread has the address of the thread's control
 * block, which the kernel knows as the base of fs (glibc, musl: pthread_self()). From there the frames are a list, each
 * with its code object. A code object can be freed, and its memory used for another one: the checksum contains what
 * distinguishes code objects, and its version, or the texts of its name and of its file's name.
 *
 * A read costs about 100 ns, whether of 8 bytes or of 1,000. From 3.11 on, the frames of a thread lie one after another,
 * so that one read serves many; and what lies on the native stack has been read for its walk.
 *
 * Code objects are freed seldom, and a probe counts it. As long as a process frees none, one that was read before is
 * the same, and is not read again.
 *
 * Like a step up a native stack, a step reads no memory itself. */
#ifndef STALLSCOPE_PYTHON_BPF_H
#define STALLSCOPE_PYTHON_BPF_H

#include "stack.bpf.h"
#include "unwind.bpf.h"
#include <bpf/bpf_core_read.h>

#define PYTHON_ROUNDS 1280 /* steps: up to five per function, one per thread that is searched */
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

/* A cache of checksums, by code object. `guard`: hash of the checksum and of what it depends on. */
#define PYTHON_CODES 512
struct python_code {
	u64 checksum;
	u64 guard;
};

struct python_code_cache {
	struct python_code of[PYTHON_CODES];
};

struct python_code_caches {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct python_code_cache);
};
SHARED struct python_code_caches python_code_caches SEC(".maps");

enum python_stage {
	PYTHON_SEVERAL, /* the newest interpreter and the main one */
	PYTHON_CACHED,	/* the thread's state that was found before */
	PYTHON_INTERPRETER,
	PYTHON_THREADS,
	PYTHON_THREAD,
	PYTHON_NEXT,  /* the state after one without functions */
	PYTHON_INNER, /* what the thread's state points to instead of a frame */
	PYTHON_FRAME,
	PYTHON_OBJECT, /* the code object */
	PYTHON_NAME,
	PYTHON_FILE,  /* the name of its file */
	PYTHON_PATH,  /* … the last part of its text */
	PYTHON_OTHER, /* another thread's state */
};

#define STRING_LENGTH 16
#define STRING_STATE 32
#define STRING_HEAD 40
#define STRING_KIND(state) ((state) >> 2 & 7) /* bytes of a character */
#define STRING_COMPACT (1 << 5)
#define STRING_ASCII (1 << 6)
#define OBJECT_SIZE 16
#define FAR (1 << 16) /* further away than a caller's frame on the same stack of frames */

static __always_inline u64 python_word(const struct python_walk *python, u32 offset)
{
	return python->word[(offset >> 3) & (PYTHON_WINDOW / 8 - 1)];
}

static __always_inline u32 python_int(const struct python_walk *python, u32 offset)
{
	return python_word(python, offset) >> (offset & 4) * 8;
}

/* A word of the frame. */
static __always_inline u64 frame_word(const struct unwind_walk *walk, u32 offset)
{
	u32 at = walk->python.frame + (offset >> 3);

	if (walk->python.on_stack)
		return walk->word[at & WINDOW_MASK];
	return walk->python.word[at & (PYTHON_WORDS - 1)];
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
	python->to_block = 0;
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
	if (!walk->python.other)
		count(end == PYTHON_TOO_DEEP ? PYTHON_STACKS_CUT : PYTHON_STACKS_FAILED);
	return WALK_DONE;
}

static __always_inline int search_python(struct python_walk *python)
{
	python->thread = 0;
	return python_reads(python, python->space.interpreters, 2 * sizeof(u64), PYTHON_SEVERAL);
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

/* `interpreter`: 0 if there are no more. */
static __always_inline int next_interpreter(struct unwind_walk *walk, u64 interpreter)
{
	struct python_walk *python = &walk->python;

	if (!interpreter) {
		if (!python->found)
			note_python(walk, 0);
		return WALK_DONE;
	}
	python->interpreter = interpreter;
	return python_reads(python, interpreter + python->space.interpreter_threads, sizeof(u64), PYTHON_THREADS);
}

/* Whether these bytes are in the window of the native stack. */
static __always_inline bool on_native_stack(const struct unwind_walk *walk, u64 address, u32 bytes)
{
	u64 size = (u64)walk->window_words * sizeof(u64);

	return address >= walk->window && address - walk->window + bytes <= size;
}

static __always_inline int to_frame(struct unwind_walk *walk, struct stack_record *record, u64 address)
{
	struct python_walk *python = &walk->python;
	u32 bytes = python->space.frame_bytes;
	u64 first;

	if (address & 7)
		return cut_python(walk, record, PYTHON_UNREADABLE);
	python->stage = PYTHON_FRAME;
	python->on_stack = 0;
	if (address >= python->block && address - python->block + bytes <= python->block_bytes) {
		python->frame = PYTHON_BLOCK_AT + (u32)((address - python->block) >> 3);
		return WALK_GOES_ON;
	}
	if (on_native_stack(walk, address, bytes)) {
		python->on_stack = 1;
		python->frame = (address - walk->window) >> 3;
		return WALK_GOES_ON;
	}
	if (python->space.entry == ENTRY_ALWAYS || (python->block_bytes && python->block - address > FAR)) {
		python->frame = 0;
		return python_reads(python, address, bytes, PYTHON_FRAME);
	}
	/* Callers lie below, and this page is there. */
	first = address + bytes - PYTHON_BLOCK;
	if (first < (address & ~(USER_PAGE - 1ULL)) || first > address)
		first = address & ~(USER_PAGE - 1ULL);
	python->block = first;
	python->block_bytes = address + bytes - first;
	python->frame = PYTHON_BLOCK_AT + (u32)((address - first) >> 3);
	python_reads(python, first, python->block_bytes, PYTHON_FRAME);
	python->to_block = 1;
	return WALK_READS;
}

/* The state runs no Python function. In another interpreter the thread may have another state, which does: an interpreter
 * that a thread made, and does not use at present, keeps one. */
static __always_inline int without_function(struct python_walk *python)
{
	if (!python->searching)
		return WALK_DONE;
	return python_reads(python, python->thread + python->space.thread_next, sizeof(u64), PYTHON_NEXT);
}

/* Up to 3.11, an interpreter that one thread has made may be used by another one, with the same state. In 3.11 and 3.12,
 * what the state points to is on the stack of the thread that uses it. */
static __always_inline bool is_of_other(const struct unwind_walk *walk, u64 at)
{
	if (walk->python.space.frame_in == NO_STEP)
		return false;
	/* The C library puts a thread's control block at the end of its stack; that of the main thread is elsewhere. */
	return at < walk->start || (walk->python.fs > walk->start && at >= walk->python.fs);
}

static __always_inline int enter_python(struct unwind_walk *walk, struct stack_record *record)
{
	struct python_walk *python = &walk->python;
	u64 frame = python_word(python, python->space.thread_frame), at;

	if (!frame || (python->several && is_of_other(walk, frame)))
		return without_function(python);
	if (python->space.frame_in == NO_STEP)
		return to_frame(walk, record, frame);
	at = frame + python->space.frame_in;
	if (!on_native_stack(walk, at, sizeof(u64)) || (at & 7))
		return python_reads(python, at, sizeof(u64), PYTHON_INNER);
	frame = walk->word[((at - walk->window) >> 3) & WINDOW_MASK];
	return frame ? to_frame(walk, record, frame) : without_function(python);
}

static __always_inline u64 code_guard(const struct unwind_walk *walk, u64 checksum)
{
	u64 process = (u64)walk->tgid << 32 | walk->python.space.freed;

	return python_mix(python_mix(python_mix(walk->python.space.salt, process), walk->python.code), checksum);
}

/* Where the checksum of the walk's code object belongs; NULL if the process's freed ones are not counted. */
static __always_inline struct python_code *cached_code(struct unwind_walk *walk)
{
	u32 slot = walk->caches, hash = (u32)(walk->python.code >> 4 ^ walk->tgid) * 0x9e3779b1U;
	struct python_code_cache *cache;

	if (!walk->python.space.freed)
		return NULL;
	cache = bpf_map_lookup_elem(&python_code_caches, &slot);
	if (!cache)
		return NULL;
	barrier_var(cache); /* no arithmetic with it before the check */
	return &cache->of[(hash >> 16) & (PYTHON_CODES - 1)];
}

static __always_inline int add_python(struct unwind_walk *walk, struct stack_record *record)
{
	struct python_walk *python = &walk->python;
	u64 second = python->last_checksum << 32 | (python->instruction & 0x7fffffff) << 1 | python->entry;

	put_python(walk, record, PYTHON_CODE | python->code);
	put_python(walk, record, second);
	python->functions++;
	python->hash = python_mix(python_mix(python->hash, python->code), second);
	if (!python->back)
		return WALK_DONE;
	return to_frame(walk, record, python->back);
}

/* `last`: what the checksum lacks. */
static __always_inline int python_function(struct unwind_walk *walk, struct stack_record *record, u64 last)
{
	struct python_code *code = cached_code(walk);

	walk->python.last_code = walk->python.code;
	walk->python.last_checksum = python_mix(walk->python.checksum, last);
	/* What another thread's frame refers to may have been no function any more. */
	if (code && !walk->python.other) {
		code->checksum = walk->python.last_checksum;
		code->guard = code_guard(walk, code->checksum);
	}
	return add_python(walk, record);
}

static __always_inline int python_frame(struct unwind_walk *walk, struct stack_record *record)
{
	struct python_walk *python = &walk->python;
	struct python_code *code;
	u32 last, entry;
	u64 at, checksum;

	/* Up to 3.10 a frame is an object, with the count of its references in front: one that was freed leads elsewhere. */
	if (python->other && python->space.entry == ENTRY_ALWAYS && !frame_word(walk, 0))
		return cut_python(walk, record, PYTHON_UNREADABLE);
	python->back = frame_word(walk, python->space.frame_back);
	python->entry = python->space.entry == ENTRY_ALWAYS;
	if (python->space.entry != ENTRY_ALWAYS) {
		entry = python->space.frame_entry;
		entry = (u8)(frame_word(walk, entry) >> (entry & 7) * 8);
		if (python->space.entry == ENTRY_FLAG) {
			python->entry = entry == 1;
		} else if (entry >= ENTRY_OWNER) {
			/* The function just before was called by C code. */
			last = walk->frames + python->words - 1;
			if (python->functions) {
				record->frames[last & STACK_MASK] |= 1;
				python->hash = python_mix(python->hash, 1);
			}
			return python->back ? to_frame(walk, record, python->back) : WALK_DONE;
		}
	}
	if (python->functions >= MAX_PYTHON)
		return cut_python(walk, record, PYTHON_TOO_DEEP);
	python->code = frame_word(walk, python->space.frame_code) & PYTHON_ADDRESS & ~7ULL; /* 3.14: with tags */
	at = frame_word(walk, python->space.frame_instruction);
	if (python->space.instruction == INSTRUCTION_AT)
		python->instruction = at - python->code - python->space.code_first;
	else
		python->instruction = (u32)(at >> (python->space.frame_instruction & 4) * 8)
				      << (python->space.instruction == INSTRUCTION_WORD);
	if (python->code == python->last_code && python->code)
		return add_python(walk, record);
	code = cached_code(walk);
	checksum = code ? code->checksum : 0;
	if (code && code->guard == code_guard(walk, checksum)) {
		python->last_code = python->code;
		python->last_checksum = checksum;
		return add_python(walk, record);
	}
	return python_reads(python, python->code, python->space.code_bytes, PYTHON_OBJECT);
}

/* Begins the checksum of a code object. */
static __always_inline int python_object(struct unwind_walk *walk, struct stack_record *record)
{
	struct python_walk *python = &walk->python;
	u64 name = python_word(python, python->space.code_name);
	u64 sum = python_mix(python->space.salt, name);
	u32 version = 0;

	python->file = python_word(python, python->space.code_file);
	sum = python_mix(sum, python->file);
	sum = python_mix(sum, python_word(python, python->space.code_lines));
	sum = python_mix(sum, python_int(python, python->space.code_line));
	python->checksum = python_mix(sum, python_word(python, OBJECT_SIZE));
	if (python->space.code_version != NO_STEP)
		version = python_int(python, python->space.code_version);
	if (version)
		return python_function(walk, record, version);
	return python_reads(python, name + python->space.name_hash, sizeof(u64), PYTHON_NAME);
}

static __always_inline int python_name(struct unwind_walk *walk, struct stack_record *record)
{
	struct python_walk *python = &walk->python;

	python->checksum = python_mix(python->checksum, python->word[0]);
	if (python->file == python->last_file && python->file)
		return python_function(walk, record, python->last_text);
	return python_reads(python, python->file, PYTHON_WINDOW, PYTHON_FILE);
}

/* The text of the file's name: `text` bytes from the word `first` on. */
static __always_inline int python_path(struct unwind_walk *walk, struct stack_record *record, u32 first)
{
	struct python_walk *python = &walk->python;
	u32 bytes = python->text, i;
	u64 word;

	barrier_var(bytes);
	for (i = 0; i < PYTHON_TEXT / 8; i++) {
		if (i * 8 >= bytes)
			break;
		word = python->word[(first + i) & (PYTHON_WINDOW / 8 - 1)];
		if (bytes - i * 8 < 8)
			word &= (1ULL << (bytes & 7) * 8) - 1;
		python->last_text = python_mix(python->last_text, word);
	}
	python->last_file = python->file;
	return python_function(walk, record, python->last_text);
}

static __always_inline int python_file(struct unwind_walk *walk, struct stack_record *record)
{
	struct python_walk *python = &walk->python;
	u64 length = python_word(python, STRING_LENGTH);
	u32 state = python_int(python, STRING_STATE), first, bytes = 0, skipped = 0;

	first = state & STRING_ASCII ? python->space.text_ascii : python->space.text_other;
	if (length <= PYTHON_LONG && (state & STRING_COMPACT))
		bytes = (u32)length * STRING_KIND(state);
	if (bytes > PYTHON_TEXT)
		skipped = (bytes - PYTHON_TEXT + 7) & ~7U;
	python->last_text = python_mix(0, length);
	python->text = bytes - skipped;
	if (!skipped && first + bytes <= python->bytes)
		return python_path(walk, record, first >> 3);
	return python_reads(python, python->file + first + skipped, (python->text + 7) & ~7U, PYTHON_PATH);
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
	case PYTHON_SEVERAL:
		/* The thread may have a state in each. */
		python->several = word != python->word[1];
		if (python->thread && !python->several)
			return python_reads(python, python->thread, python->space.thread_bytes, PYTHON_CACHED);
		python->searching = 1;
		return next_interpreter(walk, word);
	case PYTHON_CACHED:
		if (python_word(python, python->space.thread_id) != python->fs)
			return search_python(python);
		return enter_python(walk, record);
	case PYTHON_INTERPRETER:
		return next_interpreter(walk, word);
	case PYTHON_THREADS:
		return next_python_thread(python, word);
	case PYTHON_THREAD:
		if (python_word(python, python->space.thread_id) != python->fs)
			return next_python_thread(python, python_word(python, python->space.thread_next));
		note_python(walk, python->thread);
		python->found = 1;
		return enter_python(walk, record);
	case PYTHON_NEXT:
		return next_python_thread(python, word);
	case PYTHON_INNER:
		return word ? to_frame(walk, record, word) : without_function(python);
	case PYTHON_FRAME:
		return python_frame(walk, record);
	case PYTHON_OBJECT:
		return python_object(walk, record);
	case PYTHON_NAME:
		return python_name(walk, record);
	case PYTHON_FILE:
		return python_file(walk, record);
	case PYTHON_PATH:
		return python_path(walk, record, 0);
	case PYTHON_OTHER:
		return enter_python(walk, record);
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
	if (walk->python.stage == PYTHON_SEVERAL)
		return WALK_DONE;
	/* The name may be at the end of the memory that is there. */
	if (walk->python.stage == PYTHON_FILE && walk->python.bytes > STRING_HEAD)
		return python_reads(&walk->python, walk->python.file, STRING_HEAD, PYTHON_FILE);
	if (walk->python.stage < PYTHON_INNER) {
		note_python(walk, 0);
		return WALK_DONE;
	}
	return cut_python(walk, record, PYTHON_UNREADABLE);
}

/* A walk begins behind the frames that are in the record. */
static __always_inline void start_python(struct unwind_walk *walk, struct stack_record *record,
					 const struct python_space *space)
{
	struct python_walk *python = &walk->python;

	python->space = *space;
	python->words = 0;
	python->hash = 0;
	python->functions = 0;
	python->last_code = 0;
	python->last_file = 0;
	python->block_bytes = 0;
	python->block = 0;
	python->more = 0;
	python->several = 0;
	python->searching = 0;
	python->found = 0;
	put_python(walk, record, PYTHON_PROCESS | walk->tgid);
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
	python->fs = fs;
	python->searches = 0;
	python->other = 0;
	start_python(walk, record, space);
	id = walk->tid;
	known = bpf_map_lookup_elem(&python_threads, &id);
	if (!known || known->fs != fs)
		return search_python(python);
	python->searches = known->searches;
	if (known->state) {
		search_python(python);
		python->thread = known->state;
		return WALK_READS;
	}
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

/* Reads what the walk along the current task's functions wants; returns whether it could. */
static __always_inline bool read_python(struct python_walk *python)
{
	u32 bytes = python->bytes;
	void *from = (void *)python->want;

	if (python->to_block)
		return !bpf_probe_read_user(&python->word[PYTHON_BLOCK_AT], bytes > PYTHON_BLOCK ? PYTHON_BLOCK : bytes,
					    from);
	return !bpf_probe_read_user(python->word, bytes > PYTHON_WINDOW ? PYTHON_WINDOW : bytes, from);
}

__weak int python_current_some(struct unwind_walk *walk, struct stack_record *record)
{
	int next = WALK_READS;
	u32 i;

	if (!walk || !record)
		return WALK_DONE;
	if (walk->python.more)
		next = WALK_GOES_ON;
	for (i = 0; i < PYTHON_SOME && next != WALK_DONE; i++) {
		if (next == WALK_READS && !read_python(&walk->python))
			next = python_fault(walk, record);
		else
			next = python_step(walk, record);
	}
	walk->python.more = next == WALK_GOES_ON;
	return next;
}

__weak int python_current_rounds(struct unwind_walk *walk, struct stack_record *record)
{
	u32 i;

	if (!walk || !record)
		return WALK_DONE;
	for (i = 0; i < PYTHON_ROUNDS / PYTHON_SOME; i++)
		if (python_current_some(walk, record) == WALK_DONE)
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
