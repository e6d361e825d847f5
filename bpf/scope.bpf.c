/* Which threads are traced: seeding from the threads that exist, inheritance on fork, cgroup membership; and the last
 * look at every traced thread. A thread is in scope exactly when it has a `struct thread`. */
#define DEFINE_SHARED
#include "stack.bpf.h"
#include "thread.bpf.h"
#include "unwind.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* A new process has its parent's mappings. */
static __always_inline void inherit_space(u32 parent, u32 child)
{
	struct unwind_space *space;

	if (parent == child)
		return;
	space = bpf_map_lookup_elem(&unwind_spaces, &parent);
	if (space)
		bpf_map_update_elem(&unwind_spaces, &child, space, BPF_ANY);
}

static __always_inline int on_fork(struct task_struct *parent, struct task_struct *child, bool trusted)
{
	u32 tgid = TASK_FIELD(trusted, child, tgid);
	struct wait_key key = { .state = WAIT_NEW };
	struct thread *creator;

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
	/* Threads share their process's address space; a forked process begins anew. */
	if (creator && creator->key.tgid == tgid)
		key.execs = creator->key.execs;
	new_thread(child, trusted, bpf_ktime_get_ns(), PHASE_RUNNABLE, &key);
	return 0;
}

static __always_inline int on_exec(struct task_struct *task, u32 old_tid, bool trusted)
{
	struct wait_key key = {};
	struct exec_record *r;
	struct thread *t;

	if (!running())
		return 0;
	t = find_thread(task, trusted);
	if (!t) {
		u32 tgid = TASK_FIELD(trusted, task, tgid);

		/* In the hash by tid a thread that is not the leader takes the leader's id at exec. Otherwise: a command that
		 * was started for the trace, and put into the scope while it waited to begin. */
		if (bpf_map_delete_elem(&thread_hash, &old_tid) && !bpf_map_lookup_elem(&scope_expected, &tgid))
			return 0;
		t = new_thread(task, trusted, bpf_ktime_get_ns(), PHASE_ON_CPU, &key);
		if (!t)
			return 0;
	}
	bpf_map_delete_elem(&unwind_spaces, &t->key.tgid);
	t->key.execs++;
	t->key.tid = TASK_FIELD(trusted, task, pid);
	t->key.ustack = 0;
	t->key.kstack = 0;
	r = bpf_ringbuf_reserve(&records, sizeof(*r), 0);
	if (!r) {
		count(LOST_RECORDS);
		return 0;
	}
	r->type = RECORD_EXEC;
	r->tgid = t->key.tgid;
	r->time = bpf_ktime_get_ns();
	r->execs = t->key.execs;
	r->pad = 0;
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

struct task_walk {
	struct unwind_walk *walk;
	struct stack_record *record;
	struct task_struct *task;
};

/* As the loop of unwind_current(), through another task's memory: which no global function can be given. */
static long unwind_round(u32 round, void *context)
{
	struct task_walk *of = context;
	int next = unwind_step(of->walk, of->record);

	if (next == WALK_READS && !read_task_window(of->walk, of->task)) {
		of->walk->end = WALK_FAULT;
		return 1;
	}
	return next == WALK_DONE;
}

/* The id of the user stack of a task that is not running. */
static __always_inline u64 task_user_stack(struct task_struct *task, struct stack_record *record, u8 *end)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	u64 ip = BPF_CORE_READ(regs, ip), sp = BPF_CORE_READ(regs, sp), bp = BPF_CORE_READ(regs, bp);
	struct task_walk of = { .record = record, .task = task };
	u16 cs = BPF_CORE_READ(regs, cs);
	u32 zero = 0;

	/* See user_stack(). */
	if ((cs != USER_CS && cs != USER32_CS) || (!ip && !sp))
		return 0;
	if (cs == USER32_CS)
		return stack_of_32_bits(record, ip, end);
	of.walk = bpf_map_lookup_elem(&iter_walk, &zero);
	if (!of.walk)
		return 0;
	begin_walk(of.walk, record, ip, sp, bp, task->tgid);
	bpf_loop(WALK_ROUNDS, unwind_round, &of, 0);
	*end = of.walk->end;
	record->end = of.walk->end;
	return stack_id(record, of.walk->frames);
}

static __always_inline bool wanted(struct task_struct *task)
{
	u32 tgid = task->tgid;
	u32 tid = task->pid;

	if (tgid == self_tgid)
		return false;
	return trace_all || bpf_map_lookup_elem(&scope_tgids, &tgid) || bpf_map_lookup_elem(&scope_tids, &tid);
}

static __always_inline void seed(struct task_struct *task, u32 state, bool may_sleep)
{
	struct wait_key key = { .state = WAIT_PREEMPTED };
	struct stack_record *record;
	u8 phase = PHASE_BLOCKED, end = WALK_COMPLETE;
	struct thread *t;
	u32 zero = 0;

	if (task->on_cpu)
		phase = PHASE_ON_CPU;
	else if (!state || state == TASK_WAKING)
		phase = PHASE_RUNNABLE;

	record = bpf_map_lookup_elem(&iter_scratch, &zero);
	if (record && phase == PHASE_BLOCKED) {
		key.state = wait_state(state);
		if (kernel_stacks) {
			long bytes = bpf_get_task_stack(task, record->frames, sizeof(record->frames), 0);

			key.kstack = stack_id(record, kernel_frames(record, bytes));
		}
		if (may_sleep && user_stacks && !(task->flags & PF_KTHREAD))
			key.ustack = task_user_stack(task, record, &end);
		/* Woken while its stack was read: then the stack may be of two moments. */
		if (task->on_cpu || task_state(task, true) != state) {
			phase = task->on_cpu ? PHASE_ON_CPU : PHASE_RUNNABLE;
			key.ustack = 0;
			key.kstack = 0;
			key.state = WAIT_PREEMPTED;
		}
	}
	if (phase == PHASE_ON_CPU && !task->on_cpu)
		phase = PHASE_RUNNABLE;
	t = new_thread(task, true, bpf_ktime_get_ns(), phase, &key);
	if (t && t->phase == PHASE_BLOCKED && !t->switches)
		t->end = end;
}

/* Set while the iterator only walks stacks again. The process id of a process that ended may be another's by then. */
u32 restacking;

/* Walks the user stack of a waiting thread again that was not complete: tables may have come since. It is kept beside the
 * one that the wait began with, for the thread may wake up meanwhile. */
static __always_inline void restack(struct task_struct *task, struct thread *t)
{
	struct stack_record *record;
	u8 end = WALK_COMPLETE;
	u64 out, switches, id;
	u32 zero = 0;

	record = bpf_map_lookup_elem(&iter_scratch, &zero);
	if (!record || t->phase != PHASE_BLOCKED)
		return;
	out = t->out;
	if (!out || (t->late_out == out ? t->late_end : t->end) == WALK_COMPLETE)
		return;
	switches = kernel_switches(task, true);
	id = task_user_stack(task, record, &end);
	/* It ran meanwhile: what was read may be of two moments. */
	if (!id || task->on_cpu || kernel_switches(task, true) != switches || t->out != out)
		return;
	t->late_ustack = id;
	t->late_end = end;
	barrier();
	*(volatile u64 *)&t->late_out = out;
	count(LATE_STACKS);
}

/* Takes every wanted thread into the scope and reports it. Run at the start, again when the scope has grown, and when there
 * are more unwind tables. */
static __always_inline int seed_task(struct bpf_iter__task *ctx, bool may_sleep)
{
	struct task_struct *task = ctx->task;
	struct seed_record out;
	struct thread *t;
	u32 state;

	if (!task || !running())
		return 0;
	t = find_thread(task, true);
	if (t && may_sleep && user_stacks)
		restack(task, t);
	if (restacking || !wanted(task))
		return 0;
	state = task_state(task, true);
	if (state & TASK_DEAD)
		return 0;
	/* The kernel shows a task again when the reader's buffer was full: then it has its state already. */
	if (!t)
		seed(task, state, may_sleep);
	out.tid = task->pid;
	out.tgid = task->tgid;
	bpf_seq_write(ctx->meta->seq, &out, sizeof(out));
	return 0;
}

/* With user stacks; needs sleepable iterators and bpf_copy_from_user_task() (5.18). */
SEC("iter.s/task")
int scope_seed(struct bpf_iter__task *ctx)
{
	return seed_task(ctx, true);
}

SEC("iter/task")
int scope_seed_nosleep(struct bpf_iter__task *ctx)
{
	return seed_task(ctx, false);
}

/* Every traced thread that is still there, when the trace ends. */
SEC("iter/task")
int scope_dump(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct thread_record out = {};
	struct thread *t;

	if (!task)
		return 0;
	t = find_thread(task, true);
	if (!t || t->phase == PHASE_GONE)
		return 0;
	out.type = RECORD_EXIT;
	out.end = run.stopped;
	bpf_probe_read_kernel(out.comm, sizeof(out.comm), task->comm);
	out.thread = *t;
	bpf_seq_write(ctx->meta->seq, &out, sizeof(out));
	return 0;
}
