/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Accounts, waits and samples of threads, from tracepoints and a clock. Compiled by bcc behind the numbers that
 * source.py defines: where the fields of tracepoints are, the numbers of maps, the user's choice.
 *
 * Nothing here needs the kernel's type information (BTF), a ring buffer, a bounded loop or a call: kernels from 4.18 on
 * have all that is used. sched_switch and sched_wakeup run under the lock of the thread's run queue, so that a thread's
 * events are ordered. Tables come in pairs: programs fill one, while user space reads and empties the other. */
#include <uapi/linux/ptrace.h>

#define MAP(number) ((void *)bpf_pseudo_fd(1, number))
#define INLINE static inline __attribute__((always_inline))
#define FIELD(ctx, type, at) (*(type *)((char *)(ctx) + (at)))
#define LOOKUP(which, name, key)                                                                                       \
	((which) ? bpf_map_lookup_elem(MAP(name##_1), key) : bpf_map_lookup_elem(MAP(name##_0), key))
#define INSERT(which, name, key, value)                                                                                \
	((which) ? bpf_map_update_elem(MAP(name##_1), key, value, BPF_NOEXIST)                                         \
		 : bpf_map_update_elem(MAP(name##_0), key, value, BPF_NOEXIST))

struct control {
	u32 runs;
	u32 which;    /* table of each pair */
	u32 expected; /* a process that joins at its next exec; 0: none */
	u32 pad;
};

struct account {
	u64 life; /* since when it has its program */
	u64 start;
	u64 since; /* the present phase began */
	u64 out;   /* last switched out */
	u64 woken; /* from the present wait; 0: not yet */
	u64 end;
	u64 on_cpu;
	u64 runnable;
	u64 switches;
	u64 ustack;
	u64 kstack;
	u32 tgid;
	u32 phase;
	u32 state;
	u32 is_new; /* has not run yet */
	u64 blocked[STATES];
	char comm[16];
};

struct place {
	u64 ustack;
	u64 kstack;
	u64 life;
	u32 tid;
	u32 tgid;
	u32 state;
	u32 pad;
};

struct wait_sum {
	u64 count;
	u64 blocked;
	u64 blocked_min;
	u64 blocked_max;
	u64 runnable;
	u64 runnable_min;
	u64 runnable_max;
};

struct ended_key {
	u64 start;
	u32 tid;
	u32 pad;
};

struct stack {
	u64 bytes;
	u64 frames[FRAMES];
};

INLINE void count(u32 which, u64 number)
{
	u64 *found = bpf_map_lookup_elem(MAP(MAP_COUNTERS), &which);

	if (found)
		*found += number;
}

INLINE struct control *running(void)
{
	u32 zero = 0;
	struct control *control = bpf_map_lookup_elem(MAP(MAP_CONTROL), &zero);

	return control && control->runs ? control : 0;
}

/* Kernels before 5.3 take no loops, and bcc's compiler does not unroll this one. */
#define FRAME(i)                                                                                                       \
	if ((i)*8 >= bytes)                                                                                            \
		goto done;                                                                                             \
	id = (id ^ stack->frames[i]) * 0x5bd1e995;                                                                     \
	id ^= id >> 32;
#define FRAMES_4(i) FRAME(i) FRAME(i + 1) FRAME(i + 2) FRAME(i + 3)
#define FRAMES_16(i) FRAMES_4(i) FRAMES_4(i + 4) FRAMES_4(i + 8) FRAMES_4(i + 12)
#define FRAMES_64(i) FRAMES_16(i) FRAMES_16(i + 16) FRAMES_16(i + 32) FRAMES_16(i + 48)
#define EACH_FRAME                                                                                                     \
	FRAMES_64(0)                                                                                                   \
	FRAMES_16(64)                                                                                                  \
	FRAMES_16(80) FRAMES_16(96) FRAMES_4(112) FRAMES_4(116) FRAMES_4(120) FRAME(124) FRAME(125) FRAME(126)

/* The id of the stack, by which user space finds its frames; 0: there is none. */
INLINE u64 take_stack(void *ctx, u32 which, u32 slot, u64 flags)
{
	struct stack *stack = bpf_map_lookup_elem(MAP(MAP_SCRATCH), &slot);
	u64 id = 0xcbf29ce484222325ULL + flags;
	s64 bytes;
	s64 error;

	if (!stack)
		return 0;
	bytes = bpf_get_stack(ctx, stack->frames, sizeof(stack->frames), flags);
	if (bytes <= 0)
		return 0;
	stack->bytes = bytes;
	EACH_FRAME
done:
	id |= 1;
	if (LOOKUP(which, MAP_STACKS, &id))
		return id;
	error = INSERT(which, MAP_STACKS, &id, stack);
	if (!error)
		count(NEW_STACKS, 1);
	else if (!LOOKUP(which, MAP_STACKS, &id))
		count(LOST_STACKS, 1);
	return id;
}

INLINE void add_wait(struct account *t, u32 tid, u32 which, u64 waited, u64 runnable)
{
	struct wait_sum first = { 1, waited, waited, waited, runnable, runnable, runnable }, *sum;
	struct place key = {};

	key.ustack = t->ustack;
	key.kstack = t->kstack;
	key.life = t->life;
	key.tid = tid;
	key.tgid = t->tgid;
	key.state = t->state;
	sum = LOOKUP(which, MAP_WAITS, &key);
	if (!sum) {
		if (!INSERT(which, MAP_WAITS, &key, &first)) {
			count(NEW_WAITS, 1);
			return;
		}
		count(LOST_WAITS, 1);
		count(LOST_TIME, waited + runnable);
		return;
	}
	/* Only the thread itself has this key. */
	sum->count++;
	sum->blocked += waited;
	sum->runnable += runnable;
	if (waited < sum->blocked_min)
		sum->blocked_min = waited;
	if (waited > sum->blocked_max)
		sum->blocked_max = waited;
	if (runnable < sum->runnable_min)
		sum->runnable_min = runnable;
	if (runnable > sum->runnable_max)
		sum->runnable_max = runnable;
}

/* What the thread did since its last event is not known: a switch was not reported. */
INLINE void unseen(struct account *t, u32 tid, u32 which, u64 now)
{
	count(UNSEEN, 1);
	count(UNSEEN_TIME, now - t->since);
	t->blocked[OTHER] += now - t->since;
	t->ustack = LOST_STACK;
	t->kstack = 0;
	t->state = OTHER;
	if (WAITS)
		add_wait(t, tid, which, now - t->since, 0);
	t->since = now;
}

/* Of prev_state: 0 for a thread that can still run, else the number of the lowest bit, from 1 on. */
INLINE u32 state_of(u64 bits)
{
	u32 low = bits & STATE_BITS, found = 1;

	low &= 0 - low;
	if (!low)
		return 0;
	if (low & 0xff00)
		found += 8;
	if (low & 0xf0f0)
		found += 4;
	if (low & 0xcccc)
		found += 2;
	if (low & 0xaaaa)
		found += 1;
	return low >> 16 || found > OTHER ? OTHER : found;
}

INLINE void ended(struct account *t, u32 tid, u32 which, u64 now)
{
	struct ended_key key = {};

	t->end = now;
	t->phase = GONE;
	bpf_get_current_comm(t->comm, sizeof(t->comm));
	key.start = t->start;
	key.tid = tid;
	if (INSERT(which, MAP_ENDED, &key, t))
		count(LOST_THREADS, 1);
	else
		count(NEW_ENDED, 1);
	bpf_map_delete_elem(MAP(MAP_THREADS), &tid);
}

INLINE void leaves(void *ctx, struct account *t, u32 tid, u32 which, u64 now)
{
	u64 bits = FIELD(ctx, u64, PREV_STATE);

	if (t->phase == ON_CPU || t->phase == UNKNOWN)
		t->on_cpu += now - t->since;
	else
		unseen(t, tid, which, now);
	t->tgid = bpf_get_current_pid_tgid() >> 32;
	t->since = now;
	t->switches++;
	if (bits & ENDED_BITS) {
		ended(t, tid, which, now);
		return;
	}
	t->out = now;
	t->woken = 0;
	t->is_new = 0;
	t->state = state_of(bits);
	t->phase = t->state == PREEMPTED ? RUNNABLE : BLOCKED;
	if (!WAITS)
		return;
	t->ustack = USER_STACKS ? take_stack(ctx, which, 0, BPF_F_USER_STACK) : 0;
	t->kstack = KERNEL_STACKS ? take_stack(ctx, which, 0, 0) : 0;
}

INLINE void enters(struct account *t, u32 tid, u32 which, u64 now)
{
	u64 whole, waited = 0;

	if (t->phase == ON_CPU) {
		unseen(t, tid, which, now);
		return;
	}
	if (t->phase == UNKNOWN)
		t->state = PREEMPTED; /* it has waited for a core since it was taken in */
	if (t->phase == BLOCKED) {
		t->blocked[t->state & (STATES - 1)] += now - t->since;
		waited = now - t->out;
	} else {
		t->runnable += now - t->since;
		if (t->woken)
			waited = t->woken - t->out;
	}
	t->phase = ON_CPU;
	t->since = now;
	whole = now - t->out;
	if (WAITS && whole >= SHORTEST && whole <= LONGEST)
		add_wait(t, tid, which, waited, whole - waited);
}

/* What a program at a tracepoint returns: with 0, the kernel would drop the event for perf, whoever runs it
 * (perf_trace_run_bpf_submit() of kernel/events/core.c). */
#define KEEP 1

int on_switch(void *ctx)
{
	struct control *control = running();
	u32 prev = FIELD(ctx, u32, PREV_PID), next = FIELD(ctx, u32, NEXT_PID), which;
	u64 now = bpf_ktime_get_ns();
	struct account *t;

	if (!control)
		return KEEP;
	which = control->which;
	t = prev ? bpf_map_lookup_elem(MAP(MAP_THREADS), &prev) : 0;
	if (t)
		leaves(ctx, t, prev, which, now < t->since ? t->since : now);
	t = next ? bpf_map_lookup_elem(MAP(MAP_THREADS), &next) : 0;
	if (t)
		enters(t, next, which, now < t->since ? t->since : now);
	return KEEP;
}

int on_wakeup(void *ctx)
{
	u32 tid = FIELD(ctx, u32, WAKEUP_PID);
	u64 now = bpf_ktime_get_ns();
	struct account *t;

	if (!running())
		return KEEP;
	t = bpf_map_lookup_elem(MAP(MAP_THREADS), &tid);
	if (!t || (t->phase != BLOCKED && t->phase != UNKNOWN))
		return KEEP;
	if (now < t->since)
		now = t->since;
	if (t->phase == UNKNOWN && t->state == PREEMPTED)
		t->state = OTHER;
	t->blocked[t->state & (STATES - 1)] += now - t->since;
	t->since = now;
	t->woken = now;
	t->phase = RUNNABLE;
	return KEEP;
}

INLINE void begins(u32 tid, u32 tgid, u32 phase, u32 state)
{
	struct account t = {};
	u64 now = bpf_ktime_get_ns();

	t.life = now;
	t.start = now;
	t.since = now;
	t.out = now;
	t.tgid = tgid;
	t.phase = phase;
	t.state = state;
	t.is_new = phase == RUNNABLE;
	if (bpf_map_update_elem(MAP(MAP_THREADS), &tid, &t, BPF_ANY))
		count(LOST_THREADS, 1);
}

/* Runs in the thread that makes the new one. */
int on_new_task(void *ctx)
{
	u64 ids = bpf_get_current_pid_tgid();
	u32 tid = ids, tgid = ids >> 32, made = FIELD(ctx, u32, NEW_PID);
	u32 is_thread = !!(FIELD(ctx, u64, NEW_FLAGS) & CLONE_THREAD);

	if (!running() || tgid == SELF)
		return KEEP;
	if (!EVERYTHING && !bpf_map_lookup_elem(MAP(MAP_THREADS), &tid))
		return KEEP;
	if (!EVERYTHING && !CHILDREN && !is_thread)
		return KEEP;
	begins(made, is_thread ? tgid : made, RUNNABLE, NEW);
	return KEEP;
}

/* A thread that executes a program takes the id of its process's first one. */
int on_exec(void *ctx)
{
	u32 tid = FIELD(ctx, u32, EXEC_PID), old = FIELD(ctx, u32, EXEC_OLD_PID);
	struct control *control = running();
	struct account *t;

	if (!control)
		return KEEP;
	t = bpf_map_lookup_elem(MAP(MAP_THREADS), &old);
	if (!t) {
		if (control->expected && control->expected == tid)
			begins(tid, tid, ON_CPU, OTHER);
		return KEEP;
	}
	t->life = bpf_ktime_get_ns();
	if (tid != old) {
		if (bpf_map_update_elem(MAP(MAP_THREADS), &tid, t, BPF_ANY))
			count(LOST_THREADS, 1);
		bpf_map_delete_elem(MAP(MAP_THREADS), &old);
	}
	return KEEP;
}

int on_sample(void *ctx)
{
	struct control *control = running();
	u64 ids = bpf_get_current_pid_tgid(), *number, one = 1;
	struct place key = {};
	struct account *t;
	u32 tid = ids, which;

	if (!control || !tid)
		return 0;
	t = bpf_map_lookup_elem(MAP(MAP_THREADS), &tid);
	if (!t)
		return 0;
	which = control->which;
	key.life = t->life;
	key.tid = tid;
	key.tgid = ids >> 32;
	key.state = SAMPLED;
	key.ustack = USER_STACKS ? take_stack(ctx, which, 1, BPF_F_USER_STACK) : 0;
	key.kstack = KERNEL_STACKS ? take_stack(ctx, which, 1, 0) : 0;
	number = LOOKUP(which, MAP_SAMPLES, &key);
	if (number)
		*number += 1;
	else if (!INSERT(which, MAP_SAMPLES, &key, &one))
		count(NEW_SAMPLES, 1);
	else
		count(LOST_SAMPLES, 1);
	return 0;
}
