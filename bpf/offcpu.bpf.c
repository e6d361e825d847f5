/* Off-CPU time: what a thread waits for between switch-out and switch-in, and how long.
 *
 * sched_switch opens and closes each interval; sched_wakeup splits it into blocked and runnable. All three run under
 * the lock of the run queue that the thread is on, so that a thread's events are ordered: the wake-up of a thread comes
 * after its switch-out (try_to_wake_up() waits for on_cpu to clear or queues on the thread's own run queue) and before
 * its switch-in. sched_waking, which fires earlier and without that lock, would not be. */
#include "memo.bpf.h"
#include "thread.bpf.h"
#include "user.bpf.h"

char LICENSE[] SEC("license") = "GPL";

const volatile u64 min_wait;
const volatile u64 max_wait = ~0ULL;
const volatile u32 state_mask = ~0U; /* bit per enum wait_state */

static __always_inline bool same_key(const struct wait_key *a, const struct wait_key *b)
{
	return a->ustack == b->ustack && a->kstack == b->kstack && a->tid == b->tid && a->state == b->state &&
	       a->execs == b->execs && a->tgid == b->tgid;
}

/* Moves the thread's running sum into the map of waits. */
static __always_inline void flush(struct thread *t)
{
	struct wait_sum *old;

	if (!t->sum.count)
		return;
	old = bpf_map_lookup_elem(&waits, &t->sum_key);
	if (old) {
		/* Only the thread itself updates its keys, so nobody else writes here. */
		if (t->sum.blocked_min < old->blocked_min)
			old->blocked_min = t->sum.blocked_min;
		if (t->sum.blocked_max > old->blocked_max)
			old->blocked_max = t->sum.blocked_max;
		if (t->sum.runnable_min < old->runnable_min)
			old->runnable_min = t->sum.runnable_min;
		if (t->sum.runnable_max > old->runnable_max)
			old->runnable_max = t->sum.runnable_max;
		old->count += t->sum.count;
		old->blocked += t->sum.blocked;
		old->runnable += t->sum.runnable;
	} else if (bpf_map_update_elem(&waits, &t->sum_key, &t->sum, BPF_NOEXIST) == 0) {
		count(NEW_WAITS);
	} else {
		u32 which = LOST_WAITS;
		u64 *lost = bpf_map_lookup_elem(&counters, &which);

		if (lost)
			*lost += t->sum.count;
	}
	__builtin_memset(&t->sum, 0, sizeof(t->sum));
}

/* The interval that began at t->out ends now; `waits` is 1 unless some of them were not seen. Global, as some others
 * here: the verifier looks at such a function once, and not once for every way that leads to it. */
__weak int record_waits(struct thread *t, u64 now, u64 waits)
{
	u64 blocked = 0, runnable, woken;

	if (!t || !t->out)
		return 0;
	woken = t->woken;
	if (now - t->out < min_wait || now - t->out > max_wait || !(state_mask & (1U << (t->key.state & 31))))
		return 0;
	if (t->key.state != WAIT_PREEMPTED && t->key.state != WAIT_NEW) {
		/* No wake-up seen: only when it fell before the thread's state existed. */
		if (!woken)
			woken = now;
		if (woken < t->out)
			woken = t->out;
		blocked = woken - t->out;
		runnable = now - woken;
	} else {
		runnable = now - t->out;
	}
	if (t->late_out == t->out) /* never both 0: see above */
		t->key.ustack = t->late_ustack;
	if (!same_key(&t->key, &t->sum_key)) {
		flush(t);
		t->sum_key = t->key;
	}
	add_waits(&t->sum, waits, blocked, runnable);
	return 0;
}

static __always_inline void end_phase(struct thread *t, u64 now)
{
	u64 ns = now - t->since;

	if (t->phase == PHASE_ON_CPU)
		t->on_cpu += ns;
	else if (t->phase == PHASE_RUNNABLE)
		t->runnable += ns;
	else
		t->blocked[t->key.state & (WAIT_STATES - 1)] += ns;
	t->since = now;
}

/* Some kernels do not report every switch through sched_switch. What a thread's own counts of switches and of CPU time
 * tell then is used, and counted. */

/* Coming off the CPU, never seen to get on it: its CPU time since it was last seen says when. */
static __always_inline void missed_in(struct thread *t, u64 runtime, u64 now)
{
	u64 ran = runtime - t->exec_runtime;
	u64 in = now - t->since > ran ? now - ran : t->since;

	count(MISSED_INS);
	end_phase(t, in);
	t->phase = PHASE_ON_CPU;
	record_waits(t, in, 1);
}

static __always_inline void without_stack(struct thread *t)
{
	t->key.ustack = 0;
	t->key.kstack = 0;
	t->key.state = WAIT_OTHER;
}

/* Getting on the CPU, never seen to come off it: where and why it waited is not known. */
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

/* Coming off the CPU, as it seems after one stretch on it, but it was off `waits` times in between. */
static __always_inline void missed_waits(struct thread *t, u64 waits, u64 runtime, u64 now)
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
	record_waits(t, now, waits);
}

/* Getting on the CPU, as it seems after one wait, but it ran in between. */
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

static __always_inline void send_thread(struct thread *t, struct task_struct *task, u64 now)
{
	struct thread_record *r;

	flush(t);
	r = bpf_ringbuf_reserve(&records, sizeof(*r), 0);
	if (!r) {
		count(LOST_RECORDS);
		return;
	}
	r->type = RECORD_EXIT;
	r->pad = 0;
	r->end = now;
	bpf_probe_read_kernel(r->comm, sizeof(r->comm), task->comm);
	bpf_probe_read_kernel(&r->thread, sizeof(r->thread), t);
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
}

/* A thread is sent twice: on its way out, while it is sure to be seen, and at its last switch, when its time is complete.
 * The last switch can come after the end of a trace that its process's end has ended. */
static __always_inline int on_exit(bool trusted)
{
	struct task_struct *task = trusted ? bpf_get_current_task_btf() : (void *)bpf_get_current_task();
	struct thread *t = find_thread(task, trusted);
	u64 now, missed;

	if (!running() || !t || t->phase != PHASE_ON_CPU)
		return 0;
	now = bpf_ktime_get_ns();
	missed = kernel_switches(task, trusted) - t->kernel_switches;
	if ((s64)missed > 0) {
		missed_waits(t, missed, TASK_FIELD(trusted, task, se.sum_exec_runtime), now);
		t->kernel_switches += missed;
	}
	end_phase(t, now);
	send_thread(t, task, now);
	return 0;
}

/* With trace_all every thread is in scope from the start of the trace on, whether the iterator has been there or not. */
static __always_inline struct thread *first_seen(struct task_struct *task, bool trusted, u8 phase, u32 state)
{
	struct wait_key key = { .state = state };

	if (!trace_all || !TASK_FIELD(trusted, task, pid) || (u32)TASK_FIELD(trusted, task, tgid) == self_tgid)
		return NULL;
	return new_thread(task, trusted, run.began, phase, &key);
}

static __always_inline void capture_stacks(void *ctx, struct task_struct *prev, bool trusted, struct thread *t)
{
	struct stack_record *record;
	u32 zero = 0;

	t->key.ustack = 0;
	t->key.kstack = 0;
	t->end = WALK_COMPLETE;
	record = bpf_map_lookup_elem(&stack_scratch, &zero);
	if (!record)
		return;
	if (user_stacks && !(TASK_FIELD(trusted, prev, flags) & PF_KTHREAD)) {
		bool lasting = t->key.state != WAIT_PREEMPTED;

		t->key.ustack = user_stack(prev, t->key.tgid, lasting, record, &t->end);
	}
	if (kernel_stacks)
		t->key.kstack = kernel_stack(ctx, t->key.state == WAIT_PREEMPTED, record);
}

static __always_inline int on_switch(u64 *ctx, bool trusted)
{
	bool preempted = ctx[0];
	struct task_struct *prev = (void *)ctx[1];
	struct task_struct *next = (void *)ctx[2];
	struct thread *t;
	u64 now, runtime, switches;
	bool woken;
	u32 state;

	if (!running())
		return 0;
	now = bpf_ktime_get_ns();

	t = find_thread(prev, trusted);
	if (!t)
		t = first_seen(prev, trusted, PHASE_ON_CPU, WAIT_OTHER);
	if (t) {
		state = task_state(prev, trusted);
		/* It runs again already: a signal was pending, or __schedule() let go of the run queue's lock while it looked
		 * for other work, and somebody woke the thread. */
		woken = !state;
		/* The state may be TASK_WAKING by now; prev_state is what __schedule() acted on (9c2136be0878, 5.18). */
		if (switch_has_state)
			state = (u32)ctx[3];
		runtime = TASK_FIELD(trusted, prev, se.sum_exec_runtime);
		switches = kernel_switches(prev, trusted);
		if (t->phase != PHASE_ON_CPU)
			missed_in(t, runtime, now);
		else if ((s64)(switches - t->kernel_switches) > 1)
			missed_waits(t, switches - t->kernel_switches - 1, runtime, now);
		end_phase(t, now);
		t->exec_runtime = runtime;
		t->kernel_switches = switches;
		if (state & TASK_DEAD) {
			u32 tid = t->key.tid;

			send_thread(t, prev, now);
			t->phase = PHASE_GONE;
			if (!(trusted && use_storage))
				bpf_map_delete_elem(&thread_hash, &tid);
		} else {
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
			capture_stacks(ctx, prev, trusted, t);
		}
	}

	t = find_thread(next, trusted);
	if (!t)
		t = first_seen(next, trusted, PHASE_RUNNABLE, WAIT_PREEMPTED);
	if (t) {
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
		record_waits(t, now, 1);
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
	now = bpf_ktime_get_ns();
	end_phase(t, now);
	t->woken = now;
	t->phase = PHASE_RUNNABLE;
	return 0;
}

SEC("tp_btf/sched_switch")
int offcpu_switch(u64 *ctx)
{
	return on_switch(ctx, true);
}

SEC("tp_btf/sched_wakeup")
int offcpu_wakeup(u64 *ctx)
{
	return on_wakeup((void *)ctx[0], true);
}

SEC("raw_tp/sched_switch")
int offcpu_switch_raw(u64 *ctx)
{
	return on_switch(ctx, false);
}

SEC("raw_tp/sched_wakeup")
int offcpu_wakeup_raw(u64 *ctx)
{
	return on_wakeup((void *)ctx[0], false);
}

SEC("tp_btf/sched_process_exit")
int offcpu_exit(u64 *ctx)
{
	return on_exit(true);
}

SEC("raw_tp/sched_process_exit")
int offcpu_exit_raw(u64 *ctx)
{
	return on_exit(false);
}
