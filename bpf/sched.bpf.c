/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scheduler events, for every measure: one program per event, which keeps the accounts of the traced threads and calls
 * the enabled measures.
 *
 * sched_switch ends and begins the phases of a thread; sched_wakeup splits a wait into blocked and runnable. Both run
 * under the lock of the run queue that the thread is on, so that a thread's events are ordered: the wake-up of a thread
 * comes after its switch-out (try_to_wake_up() waits for on_cpu to clear or queues on the thread's own run queue) and
 * before its switch-in. sched_waking fires earlier and without that lock: it would not be ordered. */
#include "descriptors.bpf.h"
#include "futex.bpf.h"
#include "kernel_stack.bpf.h"
#include "measures.bpf.h"
#include "thread.bpf.h"
#include "user_stack.bpf.h"
#include "wakeup.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* The off-CPU time that began at t->out ends; `waits` is above 1 if some waits were not seen. */
static __always_inline void wait_ended(struct thread *t, struct task_struct *task, bool trusted, u64 now, u64 waits)
{
	if (measure_wakeup)
		wakeup_ended(t, wakeups_of(task, trusted, false), now, waits);
	if (measure_locks && waits == 1 && t->key.state == WAIT_INTERRUPTIBLE)
		locks_waited(t, wakeups_of(task, trusted, false), now);
	if (measure_gil && waits == 1 && t->key.state == WAIT_INTERRUPTIBLE)
		gil_ended(t, now);
	if (measure_offcpu)
		offcpu_ended(t, now, waits);
	if (measure_ioctl)
		ioctl_waited(t, now);
	if (measure_calls)
		calls_waited(t, now, waits);
}

/* Index into `latencies` for a wait for a core. Global, so that its paths are not multiplied by its callers'. */
__weak int latency_bucket(u64 ns)
{
	u64 rest = ns >> LATENCY_SHIFT;
	u32 bucket = 0;

	if (rest >> (LATENCY_BUCKETS - 2))
		return LATENCY_BUCKETS - 1;
	if (rest >> 16) {
		rest >>= 16;
		bucket += 16;
	}
	if (rest >> 8) {
		rest >>= 8;
		bucket += 8;
	}
	if (rest >> 4) {
		rest >>= 4;
		bucket += 4;
	}
	if (rest >> 2) {
		rest >>= 2;
		bucket += 2;
	}
	return bucket + rest - (rest > 2);
}

static __always_inline void waited_for_core(struct thread *t, u64 ns)
{
	u32 bucket = latency_bucket(ns);

	t->runnable += ns;
	if (bucket < LATENCY_BUCKETS)
		t->latencies[bucket]++;
}

static __always_inline void end_phase(struct thread *t, u64 now)
{
	u64 ns = now - t->since;

	if (t->phase == PHASE_ON_CPU)
		t->on_cpu += ns;
	else if (t->phase == PHASE_RUNNABLE)
		waited_for_core(t, ns);
	else
		t->blocked[t->key.state & (WAIT_STATES - 1)] += ns;
	t->since = now;
}

/* Some kernels do not report every switch through sched_switch. Missing ones are inferred from the kernel's counts of
 * the thread's switches and CPU time, and are counted. */

/* Switched out, but no switch-in was seen: the CPU time since its last event says when it was. */
static __always_inline void missed_in(struct thread *t, struct task_struct *task, bool trusted, u64 runtime, u64 now)
{
	u64 ran = runtime - t->exec_runtime;
	u64 in = now - t->since > ran ? now - ran : t->since;

	count(MISSED_INS);
	end_phase(t, in);
	t->phase = PHASE_ON_CPU;
	wait_ended(t, task, trusted, in, 1);
}

static __always_inline void without_stack(struct thread *t)
{
	t->key.ustack = 0;
	t->key.kstack = 0;
	t->key.object = 0;
	t->key.state = WAIT_OTHER;
}

/* Switched in, but no switch-out was seen: where and why it waited is not known. */
static __always_inline void missed_out(struct thread *t, u64 runtime, u64 now)
{
	u64 ran = runtime - t->exec_runtime;
	u64 out = now - t->since > ran ? t->since + ran : now;

	count(MISSED_OUTS);
	end_phase(t, out);
	without_stack(t);
	t->phase = PHASE_BLOCKED;
	t->out = out;
	t->woken = 0;
	t->switches++;
}

/* Switched out after what looks like one stretch on the CPU, but it was off `waits` times in between. */
static __always_inline void missed_waits(struct thread *t, struct task_struct *task, bool trusted, u64 waits,
					 u64 runtime, u64 now)
{
	u64 ran = runtime - t->exec_runtime;

	count(MISSED_WAITS);
	without_stack(t);
	t->out = now - t->since > ran ? t->since + ran : now;
	t->woken = 0;
	t->switches += waits;
	t->on_cpu += t->out - t->since;
	t->blocked[WAIT_OTHER] += now - t->out;
	t->since = now;
	wait_ended(t, task, trusted, now, waits);
}

/* Switched in after what looks like one wait, but it ran in between. */
static __always_inline void missed_run(struct thread *t, u64 runtime, u64 now)
{
	u64 ran = runtime - t->exec_runtime;

	count(MISSED_WAITS);
	if (ran > now - t->since)
		ran = now - t->since;
	t->on_cpu += ran;
	t->since += ran;
	t->out += ran;
	if (t->woken)
		t->woken += ran;
	else if (t->phase == PHASE_RUNNABLE)
		t->woken = t->out; /* preempted, and never blocked */
	t->switches++;
	without_stack(t);
}

static __always_inline void send_record(struct thread *t, struct task_struct *task, u32 type, u64 end)
{
	struct thread_record *r = bpf_ringbuf_reserve(&records, sizeof(*r), 0);

	if (!r) {
		count(LOST_RECORDS);
		return;
	}
	r->type = type;
	r->cpu = bpf_get_smp_processor_id();
	r->end = end;
	bpf_probe_read_kernel(r->comm, sizeof(r->comm), task->comm);
	bpf_probe_read_kernel(&r->thread, sizeof(r->thread), t);
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
}

static __always_inline void send_thread(struct thread *t, struct task_struct *task, u64 now)
{
	if (measure_offcpu)
		offcpu_flush(t);
	if (measure_ioctl)
		ioctl_gone(t);
	if (measure_calls)
		calls_gone(t, now);
	if (measure_locks)
		locks_gone(t);
	if (measure_gil)
		gil_gone(t);
	send_record(t, task, RECORD_EXIT, now);
}

/* The iterator, on another CPU, can add a thread to the scope after its switch has begun. */
static __always_inline u64 not_before(const struct thread *t, u64 now)
{
	return now < t->since ? t->since : now;
}

/* A new account begins at `at`: what came before was sent, sums that are not in a table yet with it. */
__weak int restart_thread(struct thread *t, u64 at)
{
	if (!t)
		return 0;
	*(volatile u64 *)&t->cut = at; /* first: see scope_dump() */
	barrier();
	t->start = at;
	t->since = at;
	t->on_cpu = 0;
	t->runnable = 0;
	t->switches = 0;
	__builtin_memset(t->blocked, 0, sizeof(t->blocked));
	__builtin_memset(t->latencies, 0, sizeof(t->latencies));
	__builtin_memset(&t->sum, 0, sizeof(t->sum));
	if (t->late_out && t->late_out == t->out)
		t->late_out = at;
	if (t->out)
		t->out = at;
	if (t->woken)
		t->woken = at;
	return 0;
}

/* To be called before an event changes the thread: ends its interval where that was due. */
static __always_inline void cut_thread(struct thread *t, struct task_struct *task, u64 now)
{
	u64 at;

	if (!intervals)
		return;
	at = interval_at(now);
	if (t->cut == at)
		return;
	send_record(t, task, RECORD_CUT, at);
	if (measure_ioctl)
		ioctl_cut(t, at);
	if (measure_calls && t->phase != PHASE_ON_CPU) /* the wait's part before the boundary */
		calls_waited(t, at, 0);
	restart_thread(t, at);
}

/* A thread is sent twice: when it begins to exit, which is sure to be seen, and at its last switch, when its time is
 * complete. If the end of its process ends the trace, its last switch can come later than that.
 *
 * Between the end of the trace and the iterator, it is sent as it was when the trace ended: the iterator will not see it.
 *
 * Kernels that call programs at this tracepoint with preemption on (those with "tracing: Guard __DECLARE_TRACE() use of
 * __DO_TRACE_CALL() with SRCU-fast") can switch the thread out in the middle of this. on_switch() then ignores the
 * thread, and its next switch shows that one was not seen. */
static __always_inline int on_exit(bool trusted)
{
	struct task_struct *task = trusted ? bpf_get_current_task_btf() : (void *)bpf_get_current_task();
	struct thread *t = find_thread(task, trusted);
	u64 now, missed, runtime;

	if (t && run.stopped)
		send_record(t, task, RECORD_CUT, run.stopped > 1 ? run.stopped : bpf_ktime_get_ns());
	if (!running() || !t || t->phase != PHASE_ON_CPU)
		return 0;
	t->exiting = true;
	barrier();
	now = not_before(t, bpf_ktime_get_ns());
	cut_thread(t, task, now);
	missed = kernel_switches(task, trusted) - t->kernel_switches;
	runtime = TASK_FIELD(trusted, task, se.sum_exec_runtime);
	if ((s64)missed > 0) {
		missed_waits(t, task, trusted, missed, runtime, now);
		t->kernel_switches += missed;
	}
	end_phase(t, now);
	t->exec_runtime = runtime;
	send_thread(t, task, now);
	barrier();
	t->exiting = false;
	return 0;
}

/* With trace_all, every thread is in scope from the start of the trace, even before the iterator has visited it. What a
 * thread did before, which the kernel hides from the iterator, is not known. */
static __always_inline struct thread *first_seen(struct task_struct *task, bool trusted, u8 phase, u32 state)
{
	struct origin key = { .state = state };
	u64 start = run.began, now;

	if (!trace_all || !TASK_FIELD(trusted, task, pid) || (u32)TASK_FIELD(trusted, task, tgid) == self_tgid)
		return NULL;
	if (all_seeded)
		start = bpf_ktime_get_ns();
	else if (intervals) {
		now = interval_at(bpf_ktime_get_ns());
		start = now > start ? now : start;
	}
	return new_thread(task, trusted, SLOT_SCHED, start, phase, &key);
}

/* Whether the stack of the wait that begins is needed: in an ioctl, calls have the one at its begin. */
static __always_inline bool user_stack_counts(struct thread *t)
{
	if (measure_offcpu || measure_wakeup || measure_timeline)
		return user_stacks;
	return measure_calls && user_stacks && !(measure_ioctl && ioctl_inside(t));
}

/* `gap`: for how long the thread has not been switched out. */
static __always_inline void capture_stacks(void *ctx, struct task_struct *prev, bool trusted, struct thread *t, u64 gap)
{
	struct stack_record *record;
	u32 slot = CONTEXT_SCHED;

	t->key.ustack = 0;
	t->key.kstack = 0;
	t->key.object = 0;
	t->end = WALK_COMPLETE;
	if (wait_objects && may_be_on_object(t->key.state)) {
		if (task_regs && t->inner_fault)
			note_context(ctx);
		t->key.object = object_of_wait(t);
	}
	record = bpf_map_lookup_elem(&stack_scratch, &slot);
	if (!record)
		return;
	if (user_stack_counts(t) && !(TASK_FIELD(trusted, prev, flags) & PF_KTHREAD)) {
		bool lasting = t->key.state != WAIT_PREEMPTED;

		t->interpreters = python_generation;
		t->key.ustack = wait_stack_is_shed(gap)
					? STACK_SHED
					: user_stack(CONTEXT_SCHED, prev, t->key.tgid, lasting, record, &t->end);
	}
	if (kernel_stacks)
		t->key.kstack =
			kernel_stack_again(ctx, t->key.state == WAIT_PREEMPTED ? MEMO_PREEMPTED : MEMO_WAITS, record);
}

/* A core switches to another thread, which is traced or not. User space reads the sum meanwhile: it never sees a stretch
 * twice. */
static __always_inline void core_switches(bool to_traced, u64 now)
{
	u32 zero = 0;
	volatile struct core_time *core = bpf_map_lookup_elem(&core_times, &zero);
	u64 since;

	if (!core)
		return;
	since = core->since;
	core->since = 0;
	if (since && now > since)
		core->sum += now - since;
	if (to_traced)
		core->since = now;
}

static __always_inline int on_switch(u64 *ctx, bool trusted)
{
	bool preempted = ctx[0];
	struct task_struct *prev = (void *)ctx[1];
	struct task_struct *next = (void *)ctx[2];
	u32 state, left = WAIT_NEW;
	struct thread *t;
	u64 now, runtime, switches, out, gap;
	bool woken, traced;

	if (!running())
		return 0;
	now = bpf_ktime_get_ns();

	t = find_thread(prev, trusted);
	if (!t)
		t = first_seen(prev, trusted, PHASE_ON_CPU, WAIT_OTHER);
	traced = t;
	if (t && t->exiting)
		left = WAIT_PREEMPTED;
	else if (t) {
		now = not_before(t, now);
		cut_thread(t, prev, now);
		state = task_state(prev, trusted);
		/* It is runnable again: a signal was pending, or __schedule() released the run queue's lock while it
		 * looked for other work, and the thread was woken. */
		woken = !state;
		/* The state may be TASK_WAKING by now; prev_state is what __schedule() acted on (9c2136be0878, 5.18). */
		if (switch_has_state)
			state = (u32)ctx[3];
		runtime = TASK_FIELD(trusted, prev, se.sum_exec_runtime);
		switches = kernel_switches(prev, trusted);
		if (t->phase != PHASE_ON_CPU)
			missed_in(t, prev, trusted, runtime, now);
		else if ((s64)(switches - t->kernel_switches) > 1)
			missed_waits(t, prev, trusted, switches - t->kernel_switches - 1, runtime, now);
		end_phase(t, now);
		t->exec_runtime = runtime;
		t->kernel_switches = switches;
		if (state & TASK_DEAD) {
			u32 tid = t->key.tid;

			left = LEFT_FOR_EVER;
			send_thread(t, prev, now);
			t->phase = PHASE_GONE;
			if (!(trusted && use_storage))
				bpf_map_delete_elem(&thread_hash, &tid);
		} else {
			gap = now - t->out;
			t->switches++;
			t->out = now;
			t->woken = 0;
			if (preempted || !state) {
				t->phase = PHASE_RUNNABLE;
				t->key.state = WAIT_PREEMPTED;
			} else {
				t->phase = woken ? PHASE_RUNNABLE : PHASE_BLOCKED;
				t->woken = woken ? now : 0;
				t->key.state = wait_state(state);
			}
			if (!woken || preempted)
				left = t->key.state;
			if (measure_offcpu || measure_wakeup || measure_timeline ||
			    (measure_ioctl && ioctl_inside(t)) || (measure_calls && calls_inside(t)))
				capture_stacks(ctx, prev, trusted, t, gap);
			if (((measure_locks && !is_shed(SHED_LOCKS)) || (measure_gil && python_generation)) &&
			    t->key.state == WAIT_INTERRUPTIBLE)
				waits_on_futex(prev, trusted, t);
		}
	}
	out = now;

	t = find_thread(next, trusted);
	if (!t)
		t = first_seen(next, trusted, PHASE_RUNNABLE, WAIT_PREEMPTED);
	traced |= t != NULL;
	if (t && t->exiting)
		t = NULL;
	if (t) {
		now = not_before(t, now);
		cut_thread(t, next, now);
		runtime = TASK_FIELD(trusted, next, se.sum_exec_runtime);
		switches = kernel_switches(next, trusted);
		if (t->phase == PHASE_ON_CPU)
			missed_out(t, runtime, now);
		else if ((s64)(switches - t->kernel_switches) > 0)
			missed_run(t, runtime, now);
		end_phase(t, now);
		t->phase = PHASE_ON_CPU;
		t->exec_runtime = runtime;
		t->kernel_switches = switches;
		wait_ended(t, next, trusted, now, 1);
	}
	if (has_budget)
		core_switches(t != NULL, now);
	if (measure_timeline && (trace_all || traced)) {
		u64 comes = (u32)TASK_FIELD(trusted, next, pid) | (u64)(u32)TASK_FIELD(trusted, next, prio) << 32;

		timeline_switch(t, out, comes, TASK_FIELD(trusted, prev, pid), left);
	}
	return 0;
}

static __always_inline int on_wakeup(struct task_struct *task, bool trusted)
{
	struct thread *t;
	u64 now;

	if (!running())
		return 0;
	t = find_thread(task, trusted);
	if (!t)
		t = first_seen(task, trusted, PHASE_BLOCKED, WAIT_OTHER);
	if (!t || t->phase != PHASE_BLOCKED)
		return 0;
	now = not_before(t, bpf_ktime_get_ns());
	cut_thread(t, task, now);
	end_phase(t, now);
	t->woken = now;
	t->phase = PHASE_RUNNABLE;
	if (measure_timeline)
		timeline_wakeup(t, now, (u32)TASK_FIELD(trusted, task, prio) | (u64)next_cpu(task, trusted) << 32);
	return 0;
}

SEC("tp_btf/sched_switch")
int sched_switch(u64 *ctx)
{
	return on_switch(ctx, true);
}

SEC("tp_btf/sched_wakeup")
int sched_wakeup(u64 *ctx)
{
	return on_wakeup((void *)ctx[0], true);
}

SEC("raw_tp/sched_switch")
int sched_switch_raw(u64 *ctx)
{
	return on_switch(ctx, false);
}

SEC("raw_tp/sched_wakeup")
int sched_wakeup_raw(u64 *ctx)
{
	return on_wakeup((void *)ctx[0], false);
}

SEC("tp_btf/sched_process_exit")
int sched_exit(u64 *ctx)
{
	return on_exit(true);
}

SEC("raw_tp/sched_process_exit")
int sched_exit_raw(u64 *ctx)
{
	return on_exit(false);
}
