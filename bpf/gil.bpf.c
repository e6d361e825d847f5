/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Waits for Python's interpreter lock (GIL): who waits how long, who has the lock when the wait begins, and in which
 * functions that thread is then.
 *
 * The wait is seen where the thread is switched out: the memory of the one that has the lock is that of the present
 * thread, too. That one may run meanwhile, on another core. So its functions are read twice, and only those that are the
 * same both times count, from the outermost one inward: those that came or went meanwhile are left out. */
#include "futex.bpf.h"
#include "gil.bpf.h"
#include "measures.bpf.h"
#include "thread.bpf.h"
#include "unwind.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* A wait that has not ended. Mirrored in tracers/engines/ebpf/measures/gil.py. */
struct gil_wait {
	u64 switches; /* see struct thread: which switch began it; all ones: it has ended */
	u64 out;      /* see there */
	u64 stack;    /* of the one that had the lock; 0: not known */
	u64 holder;   /* its id, as its process sees it; 0: not known, or nobody */
};

struct gil_wait_table {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct gil_wait);
};
struct gil_wait_table gil_waiting SEC(".maps");

/* The origin says who waits; its user stack is that of the one that had the lock. */
struct gil_key {
	struct origin origin;
	u64 holder;
};

struct gil_sum {
	u64 time;
	u64 count;
	u64 max;
};

DEFINE_SUM_TABLES(gil_sums, sizeof(struct gil_key), sizeof(struct gil_sum));

/* What is too large for the BPF stack, and what one step leaves for the next one: nested calls would need more of that
 * stack than there is. At a switch, with interrupts off. */
struct gil_scratch {
	struct gil_wait wait; /* that begins */
	u64 state;	      /* of the thread that has the lock */
	u32 functions[2];     /* that were read the first and the second time; 0: not yet */
	u32 kept;	      /* of them: what both times have in common */
	u32 pad;
	struct gil_key key; /* of the wait that ends */
	struct gil_sum none;
	struct stack_record first;
};

struct gil_scratch_array {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct gil_scratch);
};
struct gil_scratch_array gil_scratch SEC(".maps");

enum gil_loss {
	LOST_GIL_WAITS,
	LOST_GIL_FUNCTIONS, /* of one that had the lock: they changed, or could not be read, each time */
	GIL_LOSSES,
};

struct gil_loss_array {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, GIL_LOSSES);
	__type(key, u32);
	__type(value, u64);
};
struct gil_loss_array gil_losses SEC(".maps");

static __always_inline void lose_gil(enum gil_loss which)
{
	u32 key = which;
	u64 *value = bpf_map_lookup_elem(&gil_losses, &key);

	if (value)
		(*value)++;
}

static __always_inline struct gil_scratch *this_scratch(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&gil_scratch, &zero);
}

/* Of the function at this place, innermost first, in a record that begins with the process. */
static __always_inline u64 function_word(const struct stack_record *record, u32 place, u32 second)
{
	return record->frames[(1 + 2 * place + second) & STACK_MASK];
}

#define INSTRUCTION 0xffffffffULL /* and the flag of an entry */

/* How many functions are the same in both, from the outermost one inward. In the innermost of these, another
 * instruction may run. */
__weak int functions_in_common(const struct stack_record *first, const struct stack_record *second, u32 firsts,
			       u32 seconds)
{
	u64 changed;
	u32 i;

	if (!first || !second)
		return 0;
	barrier_var(firsts);
	barrier_var(seconds);
	for (i = 0; i < MAX_PYTHON; i++) {
		if (i >= firsts || i >= seconds)
			break;
		if (function_word(first, firsts - 1 - i, 0) != function_word(second, seconds - 1 - i, 0))
			break;
		changed = function_word(first, firsts - 1 - i, 1) ^ function_word(second, seconds - 1 - i, 1);
		if (changed)
			return (changed & ~INSTRUCTION) ? i : i + 1;
	}
	return i;
}

/* Leaves out the innermost `skipped` functions; returns the hash of the `kept` others. */
__weak u64 keep_functions(struct stack_record *record, u32 skipped, u32 kept)
{
	u64 hash = 0, code, second;
	u32 i;

	if (!record)
		return 0;
	barrier_var(skipped);
	barrier_var(kept);
	for (i = 0; i < MAX_PYTHON; i++) {
		if (i >= kept)
			break;
		code = function_word(record, skipped + i, 0);
		second = function_word(record, skipped + i, 1);
		record->frames[(1 + 2 * i) & STACK_MASK] = code;
		record->frames[(2 + 2 * i) & STACK_MASK] = second;
		hash = python_mix(python_mix(hash, code), second);
	}
	return hash;
}

/* Reads the functions of the thread that has the lock once more; returns whether that is to be done again: functions were
 * read twice, and have something in common, or it is the last try. */
int gil_reads(struct thread *t)
{
	u32 slot = CONTEXT_SCHED, tgid, which;
	struct gil_scratch *scratch = this_scratch();
	struct unwind_walk *walk = bpf_map_lookup_elem(&walk_scratch, &slot);
	struct stack_record *record = bpf_map_lookup_elem(&stack_scratch, &slot);
	struct stack_record *second = record;
	struct python_space *space;

	if (!t || !scratch || !walk || !record)
		return 0;
	which = !!scratch->functions[0];
	if (!which)
		record = &scratch->first;
	tgid = t->key.tgid;
	space = bpf_map_lookup_elem(&python_spaces, &tgid);
	if (!space)
		return 0;
	walk->tgid = tgid;
	walk->caches = slot;
	walk->frames = 0;
	walk->window_words = 0; /* of the present thread's stack */
	walk->python.other = 1;
	start_python(walk, record, space);
	python_reads(&walk->python, scratch->state, space->thread_bytes, PYTHON_OTHER);
	/* A stack that was cut has one word more. */
	if (python_current_rounds(walk, record) != WALK_DONE || walk->python.words != 1 + 2 * walk->python.functions)
		return 1;
	scratch->functions[which & 1] = walk->python.functions;
	if (!which)
		return 1;
	scratch->kept = functions_in_common(&scratch->first, second, scratch->functions[0], scratch->functions[1]);
	if (!scratch->kept)
		scratch->functions[0] = 0;
	return !scratch->kept;
}

/* The id of the stack of the thread that has the lock, of its Python functions only; 0: not known. */
static __always_inline u64 holder_stack(struct gil_scratch *scratch, struct stack_record *record)
{
	u32 kept = scratch->kept;
	u64 id;

	if (!kept) {
		lose_gil(LOST_GIL_FUNCTIONS);
		return 0;
	}
	id = joined_id(0, keep_functions(record, scratch->functions[1] - kept, kept));
	record->end = WALK_COMPLETE;
	return send_stack(record, 0, 1 + 2 * kept, id);
}

/* A thread is about to wait for this: whether it is the lock, and whether another thread has it. */
int gil_waits(struct thread *t, const struct futex_call *call)
{
	struct gil_scratch *scratch = this_scratch();
	struct python_space *space;
	u32 tgid;
	u64 gil;

	if (!t || !call || !scratch || call->number == NR_FUTEX_WAITV)
		return 0;
	tgid = t->key.tgid;
	space = bpf_map_lookup_elem(&python_spaces, &tgid);
	gil = space ? gil_waited(space, call->first) : 0;
	if (!gil)
		return 0;
	scratch->wait.switches = t->kernel_switches;
	scratch->wait.out = t->out;
	scratch->wait.stack = 0;
	scratch->state = gil_holder(gil);
	scratch->wait.holder = scratch->state ? gil_thread(space, scratch->state) : 0;
	scratch->functions[0] = 0;
	scratch->kept = 0;
	return scratch->wait.holder ? GIL_HELD : GIL_FREE;
}

/* Keeps what has been found out of the wait. */
int gil_begins(struct thread *t)
{
	struct gil_scratch *scratch = this_scratch();
	struct stack_record *record;
	u32 slot = CONTEXT_SCHED, tid;

	record = bpf_map_lookup_elem(&stack_scratch, &slot);
	if (!t || !scratch || !record)
		return 0;
	if (scratch->wait.holder)
		scratch->wait.stack = holder_stack(scratch, record);
	tid = t->key.tid;
	if (bpf_map_update_elem(&gil_waiting, &tid, &scratch->wait, BPF_ANY))
		lose_gil(LOST_GIL_WAITS);
	return 0;
}

/* The interval that began at t->out ends now; see offcpu_ended(). */
int gil_ended(struct thread *t, u64 now)
{
	struct gil_scratch *scratch = this_scratch();
	struct gil_wait *wait;
	struct gil_sum *sum;
	u32 tid, slot;
	void *table;
	u64 time;

	if (!t)
		return 0;
	tid = t->key.tid;
	wait = bpf_map_lookup_elem(&gil_waiting, &tid);
	if (!wait || !scratch || wait->switches != t->kernel_switches)
		return 0;
	wait->switches = ~0ULL;
	if (!wait_counts(t, now))
		return 0;
	time = blocked_part(t, now);
	scratch->key.origin = t->key;
	scratch->key.origin.ustack = wait->stack;
	scratch->key.origin.kstack = 0;
	scratch->key.origin.object = 0;
	scratch->key.holder = wait->holder;
	slot = t->cut & (SUM_TABLES - 1);
	table = bpf_map_lookup_elem(&gil_sums, &slot);
	if (!table)
		return 0;
	sum = bpf_map_lookup_elem(table, &scratch->key);
	if (!sum) {
		/* The thread itself updates its keys. */
		if (!bpf_map_update_elem(table, &scratch->key, &scratch->none, BPF_NOEXIST))
			count(NEW_GIL_WAITS);
		sum = bpf_map_lookup_elem(table, &scratch->key);
	}
	if (!sum) {
		lose_gil(LOST_GIL_WAITS);
		return 0;
	}
	sum->time += time;
	sum->count++;
	if (time > sum->max)
		sum->max = time;
	return 0;
}

int gil_gone(struct thread *t)
{
	u32 tid;

	if (!t)
		return 0;
	tid = t->key.tid;
	bpf_map_delete_elem(&gil_waiting, &tid);
	return 0;
}
