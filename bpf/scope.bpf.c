/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which threads are traced: seeding from the existing threads, inheritance on fork, cgroup membership; and the final
 * dump of every traced thread. A thread is in scope exactly when it has a `struct thread`. */
#define DEFINE_SHARED
#include "descriptors.bpf.h"
#include "open_calls.bpf.h"
#include "ioctl.bpf.h"
#include "kernel_stack.bpf.h"
#include "measures.bpf.h"
#include "stack.bpf.h"
#include "thread.bpf.h"
#include "unwind.bpf.h"
#include "user_stack.bpf.h"
#include "wakeup.bpf.h"

char LICENSE[] SEC("license") = "GPL";

const volatile bool creation_stacks;

/* Whether the memory for a walk is in use: other threads of a core can create one before such a walk is done. */
struct fork_walkers {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
};
struct fork_walkers fork_walkers SEC(".maps");

/* A new process has its parent's mappings, and interpreter. */
static __always_inline void inherit_space(u32 parent, u32 child)
{
	struct python_space *python;
	struct unwind_space *space;

	if (parent == child)
		return;
	space = bpf_map_lookup_elem(&unwind_spaces, &parent);
	if (space)
		bpf_map_update_elem(&unwind_spaces, &child, space, BPF_ANY);
	python = python_frames ? bpf_map_lookup_elem(&python_spaces, &parent) : NULL;
	if (python)
		bpf_map_update_elem(&python_spaces, &child, python, BPF_ANY);
}

#define CLONE_CODE 12

/* Whether the code at `ip` is the end of a function that has called clone, and pushed nothing: it returns if the call's
 * result is positive. Both glibc's (sysdeps/unix/sysv/linux/x86_64/clone.S, clone3.S) have no unwind rules from their
 * system call on, as these would be wrong in the child; musl's (src/thread/x86_64/clone.s) has none at all. */
static __always_inline bool returns_at_once(u64 ip)
{
	u8 code[CLONE_CODE], at;

	if (bpf_probe_read_user(code, sizeof(code), (void *)ip))
		return false;
	/* test %rax,%rax; jl …; je …; ret */
	if (code[0] == 0x48 && code[1] == 0x85 && code[2] == 0xc0 && code[3] == 0x7c && code[5] == 0x74)
		return code[7] == 0xc3;
	/* test %eax,%eax; jne to a ret */
	if (code[0] != 0x85 || code[1] != 0xc0 || code[2] != 0x75)
		return false;
	return !bpf_probe_read_user(&at, sizeof(at), (void *)(ip + 4 + code[3])) && at == 0xc3;
}

/* The id of the user stack of the current task, which creates a thread of its process `tgid`. */
static __always_inline u64 creation_stack(struct task_struct *current, u32 tgid)
{
	u32 slot = CONTEXT_FORK, zero = 0, *busy;
	struct stack_record *record = bpf_map_lookup_elem(&stack_scratch, &slot);
	u64 ip, sp, bp, caller, id;
	u16 cs;
	u8 end;

	cs = task_registers(task_regs ? bpf_get_current_task_btf() : current, &ip, &sp, &bp);
	if (cs == USER_CS && returns_at_once(ip) && !bpf_probe_read_user(&caller, sizeof(caller), (void *)sp)) {
		ip = caller;
		sp += sizeof(caller);
	}
	busy = bpf_map_lookup_elem(&fork_walkers, &zero);
	if (!record || !busy)
		return 0;
	if (__sync_val_compare_and_swap(busy, 0, 1)) {
		count(LOST_MAKERS);
		return 0;
	}
	id = walk_user(CONTEXT_FORK, cs, ip, sp, bp, tgid, true, record, &end);
	__sync_lock_test_and_set(busy, 0);
	return id;
}

static __always_inline int on_fork(struct task_struct *parent, struct task_struct *child, bool trusted)
{
	u32 tgid = TASK_FIELD(trusted, child, tgid);
	struct origin key = { .state = WAIT_NEW };
	struct thread *creator, *t;
	u64 now, made_in = 0;

	if (!running() || tgid == self_tgid)
		return 0;
	inherit_space(TASK_FIELD(trusted, parent, tgid), tgid);
	creator = find_thread(parent, trusted);
	if (!trace_all) {
		if (!creator)
			return 0;
		if (!follow_children && (u32)TASK_FIELD(trusted, parent, tgid) != tgid)
			return 0;
	}
	if (creation_stacks && user_stacks && (u32)TASK_FIELD(trusted, parent, tgid) == tgid &&
	    !is_shed(SHED_WAKER_STACKS))
		made_in = creation_stack(parent, tgid);
	now = bpf_ktime_get_ns();
	t = new_thread(child, trusted, SLOT_FORK, now, PHASE_RUNNABLE, &key);
	if (t) {
		/* Once more: with preemption on (see on_exit()), another fork may have used the slot meanwhile. The
		 * child does not run yet, so there is no other writer. */
		begin_thread(t, child, trusted, now, PHASE_RUNNABLE, &key);
		t->creator = TASK_FIELD(trusted, parent, pid);
		t->made_in = made_in;
		prepare_wakeups(child, trusted);
	}
	return 0;
}

static __always_inline int on_exec(struct task_struct *task, u32 old_tid, bool trusted)
{
	struct origin key = {};
	struct exec_record *r;
	struct thread *t;
	u64 time, lived;
	u32 life;

	if (!running())
		return 0;
	t = find_thread(task, trusted);
	if (!t) {
		u32 tgid = TASK_FIELD(trusted, task, tgid);

		/* A thread that is not the leader takes the leader's id at exec: the hash by tid has it under its old
		 * id. Otherwise: a command that was started for the trace, and joins the scope at its exec. */
		if (bpf_map_delete_elem(&thread_hash, &old_tid) && !bpf_map_lookup_elem(&scope_expected, &tgid))
			return 0;
		t = new_thread(task, trusted, SLOT_EXEC, bpf_ktime_get_ns(), PHASE_ON_CPU, &key);
		if (!t)
			return 0;
	}
	bpf_map_delete_elem(&unwind_spaces, &t->key.tgid);
	if (python_frames)
		bpf_map_delete_elem(&python_spaces, &t->key.tgid);
	if (measure_calls)
		calls_left(t);
	time = bpf_ktime_get_ns();
	life = t->key.life;
	lived = t->lived;
	t->key.life = next_life();
	t->lived = time;
	t->key.tid = TASK_FIELD(trusted, task, pid);
	t->key.ustack = 0;
	t->key.kstack = 0;
	t->made_in = 0;
	r = bpf_ringbuf_reserve(&records, sizeof(*r), 0);
	if (!r) {
		count(LOST_RECORDS);
		return 0;
	}
	r->type = RECORD_EXEC;
	r->tgid = t->key.tgid;
	r->time = time;
	r->lived = lived;
	r->life = life;
	r->first = t->first;
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int scope_fork(u64 *ctx)
{
	return on_fork((void *)ctx[0], (void *)ctx[1], true);
}

SEC("tp_btf/sched_process_exec")
int scope_exec(u64 *ctx)
{
	return on_exec((void *)ctx[0], ctx[1], true);
}

SEC("raw_tp/sched_process_fork")
int scope_fork_raw(u64 *ctx)
{
	return on_fork((void *)ctx[0], (void *)ctx[1], false);
}

SEC("raw_tp/sched_process_exec")
int scope_exec_raw(u64 *ctx)
{
	return on_exec((void *)ctx[0], ctx[1], false);
}

/* Where interpreters free a code object: the deallocator of its type. */
SEC("uprobe")
int python_freed(void *ctx)
{
	u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct python_space *space = bpf_map_lookup_elem(&python_spaces, &tgid);

	if (space && space->freed)
		__sync_fetch_and_add(&space->freed, 1);
	return 0;
}

/* Size of the window, in words, that user space reads for a walk. */
#define REQUEST_WORDS WINDOW_FIRST
#define REQUEST_STEPS 64 /* more than there are frames in a block, and beside them on the native stack */

/* A stack walk of a sleeping thread for which user space reads the memory. A program that reads it, by
 * bpf_copy_from_user_task(), could be made to wait by the thread's user for ever. Mirrored in
 * tracers/kernel/sleepers.py. */
struct walk_request {
	u64 ip;
	u64 sp;
	u64 bp;
	u64 fs;
	u64 window; /* address of word[0] */
	u64 want;   /* the word that must be read next */
	u64 id;	    /* of the stack; 0: none */
	u32 tgid;
	u32 words; /* read from `window` on */
	u16 begins;
	u16 reads;  /* the walk continues when `want` has been read */
	u16 end;    /* enum walk_end */
	u16 python; /* the walk is along its Python functions */
	u32 tid;
	u32 narrow; /* 32-bit code */
	u64 word[REQUEST_WORDS];
};

struct request_array {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct walk_request);
} walk_request SEC(".maps");

/* Results of such walks, by thread id. */
struct walked_stack {
	u64 out; /* when its wait began */
	u64 id;
	u64 end;
};

struct walked_hash {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct walked_stack);
} walked_stacks SEC(".maps");

/* Runs rounds of a walk in the current window; returns the enum walk_next of the last one. */
__weak int unwind_window(struct unwind_walk *walk, struct stack_record *record)
{
	int next = WALK_GOES_ON;
	u32 i;

	if (!walk || !record)
		return WALK_DONE;
	for (i = 0; i < SOME_ROUNDS && next == WALK_GOES_ON; i++)
		next = unwind_step(walk, record);
	return next;
}

/* Steps with what user space has read, as long as it suffices. */
static __always_inline int requested_python(struct unwind_walk *walk, struct stack_record *record,
					    struct walk_request *request)
{
	u32 bytes = walk->python.bytes, i;
	int next;

	if (walk->python.to_block)
		bpf_probe_read_kernel(&walk->python.word[PYTHON_BLOCK_AT], bytes > PYTHON_BLOCK ? PYTHON_BLOCK : bytes,
				      request->word);
	else
		bpf_probe_read_kernel(walk->python.word, bytes > PYTHON_WINDOW ? PYTHON_WINDOW : bytes, request->word);
	next = python_step(walk, record);
	for (i = 0; i < REQUEST_STEPS && next == WALK_GOES_ON; i++)
		next = python_step(walk, record);
	return next;
}

/* Continues a walk along Python functions with what user space has read; returns whether there is more to read. */
__weak int request_python(struct unwind_walk *walk, struct stack_record *record, u64 fs)
{
	u32 zero = 0, bytes;
	struct walk_request *request = bpf_map_lookup_elem(&walk_request, &zero);
	int next;

	if (!walk || !record || !request)
		return 0;
	if (!request->python) {
		walk->python.words = 0;
		walk->python.hash = 0;
		if (!python_frames || !python_generation)
			return 0;
		next = begin_python(walk, record, fs);
	} else {
		bytes = walk->python.bytes;
		if (request->words * sizeof(u64) < bytes)
			next = python_fault(walk, record);
		else
			next = requested_python(walk, record, request);
	}
	request->python = next == WALK_READS;
	request->reads = next == WALK_READS;
	request->want = walk->python.want;
	return request->reads;
}

/* Run by user space (BPF_PROG_TEST_RUN): continues the walk in `walk_request`. */
SEC("raw_tp")
int scope_walk(void *ctx)
{
	u32 zero = 0, bytes, i;
	struct walk_request *request = bpf_map_lookup_elem(&walk_request, &zero);
	struct stack_record *record = bpf_map_lookup_elem(&iter_scratch, &zero);
	struct unwind_walk *walk = bpf_map_lookup_elem(&iter_walk, &zero);
	int next = WALK_GOES_ON;
	u64 id;

	if (!request || !record || !walk)
		return 0;
	if (request->begins)
		request->python = 0;
	if (request->python)
		goto python;
	if (request->begins)
		begin_walk(walk, record, request->ip, request->sp, request->bp, request->tgid, request->tid,
			   request->narrow);
	else if (!request->words)
		next = WALK_DONE; /* the wanted word cannot be read */
	request->begins = 0;
	request->reads = 0;
	request->id = 0;
	bytes = request->words * sizeof(u64);
	if (bytes > sizeof(request->word))
		bytes = sizeof(request->word);
	if (bytes) {
		bpf_probe_read_kernel(walk->word, bytes, request->word);
		walk->window = request->window;
		walk->window_words = bytes / sizeof(u64);
	}
	for (i = 0; i < WALK_ROUNDS / SOME_ROUNDS && next == WALK_GOES_ON; i++)
		next = unwind_window(walk, record);
	if (next == WALK_READS) {
		request->want = walk->want;
		request->reads = 1;
		walk->end = WALK_FAULT; /* unless the word is read */
	}
	record->end = walk->end;
	request->end = end_of_walk(walk->tid, record->frames[0], walk->sp, walk->end, walk->missed);
	if (request->reads)
		return 0;
python:
	if (request_python(walk, record, request->fs))
		return 0;
	id = joined_id(stack_hash(record, walk->frames), end_python(walk) ? walk->python.hash : 0);
	request->id = send_stack(record, walk->frames & MAX_FRAMES, walk->python.words, id);
	return 0;
}

static __always_inline bool wanted(struct task_struct *task)
{
	u32 tgid = task->tgid;
	u32 tid = task->pid;

	if (tgid == self_tgid)
		return false;
	return trace_all || bpf_map_lookup_elem(&scope_tgids, &tgid) || bpf_map_lookup_elem(&scope_tids, &tid);
}

/* An int, in 7.2 a u8: read with the size that the kernel's BTF gives. */
static __always_inline bool on_cpu(struct task_struct *task)
{
	return BPF_CORE_READ_BITFIELD_PROBED(task, on_cpu);
}

/* Of a thread found asleep: where it called the kernel, until scope_walk has walked the rest. 0: it has no user code. */
static __always_inline u64 innermost_only(struct task_struct *task, struct stack_record *record)
{
	u64 ip, sp, bp;
	u16 cs = task_registers(task, &ip, &sp, &bp);

	if ((cs != USER_CS && cs != USER32_CS) || (!ip && !sp)) /* see user_stack() */
		return 0;
	record->frames[0] = ip;
	record->end = WALK_UNREAD;
	return stack_id(record, 1);
}

/* What a thread that was found asleep waits on, unless it is woken meanwhile. */
static __always_inline void found_on_object(struct thread *t, struct task_struct *task, u32 state)
{
	struct object_work *work = object_work(OBJECT_ITER, (u64)task->tgid << 32 | (u32)task->pid);
	struct pt_regs *regs;
	u64 object;

	if (!work || (task->flags & (PF_KTHREAD | PF_IO_WORKER)))
		return;
	if (task_regs)
		regs = (struct pt_regs *)bpf_task_pt_regs(task);
	else
		regs = BPF_CORE_READ(task, stack) + THREAD_SIZE - bpf_core_type_size(struct pt_regs);
	object = object_of(t, work, task, regs, true);
	if (object && !on_cpu(task) && task_state(task, true) == state && t->phase == PHASE_BLOCKED && !t->switches)
		t->key.object = object;
}

static __always_inline void seed(struct task_struct *task, u32 state)
{
	struct origin key = { .state = WAIT_PREEMPTED };
	struct stack_record *record;
	u8 phase = PHASE_BLOCKED, end = WALK_COMPLETE;
	struct thread *t;
	u32 zero = 0, known;

	if (on_cpu(task))
		phase = PHASE_ON_CPU;
	else if (!state || state == TASK_WAKING)
		phase = PHASE_RUNNABLE;

	known = python_generation;
	record = bpf_map_lookup_elem(&iter_scratch, &zero);
	if (record && phase == PHASE_BLOCKED) {
		key.state = wait_state(state);
		if (kernel_stacks) {
			long bytes = bpf_get_task_stack(task, record->frames, KERNEL_STACK_BYTES, 0);

			key.kstack = stack_id(record, kernel_frames(record, bytes));
		}
		if (user_stacks && !(task->flags & PF_KTHREAD)) {
			key.ustack = innermost_only(task, record);
			end = WALK_UNREAD;
		}
		/* Woken while its stack was read: the stack may be inconsistent. */
		if (on_cpu(task) || task_state(task, true) != state) {
			phase = on_cpu(task) ? PHASE_ON_CPU : PHASE_RUNNABLE;
			key.ustack = 0;
			key.kstack = 0;
			key.state = WAIT_PREEMPTED;
		}
	}
	if (phase == PHASE_ON_CPU && !on_cpu(task))
		phase = PHASE_RUNNABLE;
	/* It may wait for its core until the trace ends: scope_sleepers has its stack walked while it does. */
	if (phase == PHASE_RUNNABLE && user_stacks && !(task->flags & PF_KTHREAD))
		end = WALK_UNREAD;
	prepare_wakeups(task, true);
	t = new_thread(task, true, SLOT_ITER, bpf_ktime_get_ns(), phase, &key);
	if (t && t->phase != PHASE_ON_CPU && !t->switches) {
		if (t->phase == PHASE_BLOCKED && wait_objects && may_be_on_object(key.state))
			found_on_object(t, task, state);
		t->end = end;
		t->interpreters = known;
	}
}

/* The boundary at which scope_dump reports threads; 0: all threads, as they are. */
u64 dumped_at;

/* Whether an interpreter was found in the thread's process, or in another one, since its stack was taken. */
static __always_inline bool lacks_python(struct thread *t, u32 known)
{
	u32 tgid = t->key.tgid;

	return python_frames && t->interpreters != known && bpf_map_lookup_elem(&python_spaces, &tgid);
}

/* Adds every wanted thread to the scope and reports it. Run at the start, and again when the scope has grown. */
SEC("iter/task")
int scope_seed(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct seed_record out;
	u32 state;

	if (!task || !running() || !wanted(task))
		return 0;
	state = task_state(task, true);
	if (state & TASK_DEAD)
		return 0;
	/* The kernel visits a task again if the reader's buffer was full: its entry then exists already. */
	if (!find_thread(task, true))
		seed(task, state);
	out.tid = task->pid;
	out.tgid = task->tgid;
	bpf_seq_write(ctx->meta->seq, &out, sizeof(out));
	return 0;
}

/* Stores the result of scope_walk for a thread that is still waiting, and
 * reports the threads whose user stack is incomplete. */
SEC("iter/task")
int scope_sleepers(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct sleeper_record out = {};
	struct walked_stack *walked;
	struct thread *t;
	u64 ip, sp, bp;
	u16 cs;

	if (!task || !running() || (task->flags & PF_KTHREAD))
		return 0;
	t = find_thread(task, true);
	if (!t || (t->phase != PHASE_BLOCKED && t->phase != PHASE_RUNNABLE) || !t->out)
		return 0;
	out.tid = task->pid;
	walked = bpf_map_lookup_elem(&walked_stacks, &out.tid);
	if (walked && walked->out == t->out && walked->id) {
		t->late_ustack = walked->id;
		t->late_end = walked->end;
		t->interpreters = python_generation;
		barrier();
		*(volatile u64 *)&t->late_out = walked->out;
		count(LATE_STACKS);
	}
	if ((t->late_out == t->out ? t->late_end : t->end) == WALK_COMPLETE && !lacks_python(t, python_generation))
		return 0;
	cs = task_registers(task, &ip, &sp, &bp);
	if ((cs != USER_CS && cs != USER32_CS) || (!ip && !sp)) /* see user_stack() */
		return 0;
	out.tgid = task->tgid;
	out.out = t->out;
	out.ip = ip;
	out.sp = sp;
	out.bp = bp;
	out.fs = cs == USER_CS ? task->thread.fsbase : 0; /* without it there are no Python functions */
	out.narrow = cs == USER32_CS;
	bpf_seq_write(ctx->meta->seq, &out, sizeof(out));
	return 0;
}

static __always_inline u32 lock_writes(struct mm_struct *mm)
{
	struct mm_struct___count *counted = (void *)mm;
	struct mm_struct___number *numbered = (void *)mm;

	if (bpf_core_field_exists(counted->mm_lock_seq.sequence))
		return BPF_CORE_READ(counted, mm_lock_seq.sequence);
	if (bpf_core_field_exists(numbered->mm_lock_seq))
		return BPF_CORE_READ(numbered, mm_lock_seq);
	return 0;
}

/* Reports the processes whose address space is locked at this moment. Whoever put a probe on a file would wait for
 * them, and the host's forks for him (tracers/holder/locked.py). */
SEC("iter/task")
int scope_locked(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct locked_record out = {};
	struct mm_struct *mm;

	if (!task || (task->flags & PF_KTHREAD))
		return 0;
	mm = task->mm;
	if (!mm || !bpf_core_field_exists(mm->mmap_lock.count) ||
	    (task->pid != task->tgid && task->group_leader->mm == mm))
		return 0;
	out.count = BPF_CORE_READ(mm, mmap_lock.count.counter);
	if (!out.count)
		return 0;
	out.mm = (u64)mm;
	out.tgid = task->tgid;
	out.writes = lock_writes(mm);
	bpf_seq_write(ctx->meta->seq, &out, sizeof(out));
	return 0;
}

/* What scope_dump reports: too large for the BPF stack. Only one iterator runs at a time. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct thread_record);
} dump_scratch SEC(".maps");

/* Reports every traced thread that still exists when the trace ends; while a boundary passes, those that have not been
 * cut there. */
SEC("iter/task")
int scope_dump(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct thread_record *out;
	struct thread *t;
	u32 zero = 0;
	u64 at;

	out = bpf_map_lookup_elem(&dump_scratch, &zero);
	if (!task || !out)
		return 0;
	t = find_thread(task, true);
	if (!t || t->phase == PHASE_GONE)
		return 0;
	at = dumped_at;
	out->type = RECORD_EXIT;
	out->end = at ? at : run.stopped;
	bpf_probe_read_kernel(out->comm, sizeof(out->comm), task->comm);
	out->thread = *t;
	/* Only its own event changes it, and that has cut it before. */
	if (at && *(volatile u64 *)&t->cut == at)
		return 0;
	bpf_seq_write(ctx->meta->seq, out, sizeof(*out));
	return 0;
}
