/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Wake-ups: who ends a thread's wait, where, and who had ended that thread's own wait meanwhile.
 *
 * sched_waking runs in the waker's context, when it has decided to wake a thread and holds its lock (pi_lock), with
 * interrupts off. The waker is noted with the thread, as pending. The thread may not be asleep yet, and then does not
 * fall asleep: sched_wakeup, which follows, tells. When the thread runs again, the time that it was blocked is added to
 * the chain of those who ended the wait.
 *
 * What interrupts a thread is no deed of that thread. The tracepoints of interrupts say what is running on a core. */
#include "kernel_stack.bpf.h"
#include "measures.bpf.h"
#include "thread.bpf.h"
#include "user_stack.bpf.h"
#include "wakeup.bpf.h"

char LICENSE[] SEC("license") = "GPL";

const volatile u32 chain_depth = 1; /* links of a chain, at most MAX_WAKERS */

struct wakeup_key {
	struct origin origin;
	u64 chain;
};

DEFINE_SUM_TABLES(wakeups, sizeof(struct wakeup_key), sizeof(struct wakeup_sum));

/* Waits that found no room in a table: by table and state. */
struct lost_wakeups {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SUM_TABLES *WAIT_STATES);
	__type(key, u32);
	__type(value, struct wakeup_sum);
};
struct lost_wakeups lost_wakeups SEC(".maps");

/* Chains are sent at a switch, with interrupts off. */
struct chain_scratch {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct chain_record);
};
struct chain_scratch chain_scratch SEC(".maps");

/* The interrupt that runs on a core, and the softirq that runs or is interrupted by it. */
struct interrupts {
	u32 context; /* enum waker_context; WAKER_THREAD: no interrupt */
	u32 number;
	u32 softirq; /* its number + 1; 0: none */
	u32 follows; /* whether the softirq that runs follows on one that does what was put off */
	u64 put_off; /* when the last softirq ended that does what was put off; ns */
};

struct interrupt_array {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct interrupts);
};
struct interrupt_array interrupts SEC(".maps");

static __always_inline struct interrupts *this_core(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&interrupts, &zero);
}

static __always_inline int on_interrupt(enum waker_context context, u32 number)
{
	struct interrupts *core = this_core();

	if (core) {
		core->number = number;
		core->context = context;
	}
	return 0;
}

/* Softirqs that tasks raise by what they do: the others run timers, and what was put off. */
#define RAISED_BY_TASKS (1 << 0 /* HI */ | 1 << 2 /* NET_TX */ | 1 << 3 /* NET_RX */ | 1 << 4 /* BLOCK */)

/* Those that send, too: then NET_RX follows, in the same run, for what is sent to this host. TCP's delayed
 * acknowledgements and repetitions are timers, what it holds back for the pace is sent by a timer or a tasklet. */
#define SENDS_WHAT_WAS_PUT_OFF (1 << 1 /* TIMER */ | 1 << 6 /* TASKLET */ | 1 << 8 /* HRTIMER */)

/* From one of them to the next. Others in between may take long: RCU's, and the scheduler's. */
#define SAME_RUN_NS 50000

static __always_inline int on_softirq(u32 softirq)
{
	struct interrupts *core = this_core();

	if (!core)
		return 0;
	core->softirq = softirq + 1;
	if (!(1 << (softirq & 31) & (RAISED_BY_TASKS | SENDS_WHAT_WAS_PUT_OFF)))
		core->follows = bpf_ktime_get_ns() - core->put_off <= SAME_RUN_NS;
	return 0;
}

static __always_inline int after_softirq(u32 softirq)
{
	struct interrupts *core = this_core();

	if (!core)
		return 0;
	core->softirq = 0;
	if (1 << (softirq & 31) & SENDS_WHAT_WAS_PUT_OFF || (!(1 << (softirq & 31) & RAISED_BY_TASKS) && core->follows))
		core->put_off = bpf_ktime_get_ns();
	return 0;
}

/* Whether a softirq may be what the current task has asked for: it runs when a task that is in the network's code
 * lets softirqs run, and then runs all that are due on the core. */
static __always_inline bool may_be_asked_for(u32 softirq)
{
	struct interrupts *core = this_core();

	return core && 1 << (softirq & 31) & RAISED_BY_TASKS && bpf_ktime_get_ns() - core->put_off > SAME_RUN_NS;
}

/* Programs of one pair of tracepoints, in both shapes. */
#define INTERRUPT(name, context, number)                                                                               \
	SEC("tp_btf/" #name "_entry")                                                                                  \
	int wakeup_##name##_entry(u64 *ctx)                                                                            \
	{                                                                                                              \
		return on_interrupt(context, number);                                                                  \
	}                                                                                                              \
	SEC("tp_btf/" #name "_exit")                                                                                   \
	int wakeup_##name##_exit(u64 *ctx)                                                                             \
	{                                                                                                              \
		return on_interrupt(WAKER_THREAD, 0);                                                                  \
	}                                                                                                              \
	SEC("raw_tp/" #name "_entry")                                                                                  \
	int wakeup_##name##_entry_raw(u64 *ctx)                                                                        \
	{                                                                                                              \
		return on_interrupt(context, number);                                                                  \
	}                                                                                                              \
	SEC("raw_tp/" #name "_exit")                                                                                   \
	int wakeup_##name##_exit_raw(u64 *ctx)                                                                         \
	{                                                                                                              \
		return on_interrupt(WAKER_THREAD, 0);                                                                  \
	}

INTERRUPT(irq_handler, WAKER_DEVICE, ctx[0])
INTERRUPT(local_timer, WAKER_TIMER, 0)
INTERRUPT(irq_work, WAKER_CORE, 0)
INTERRUPT(call_function, WAKER_CORE, 0)
INTERRUPT(call_function_single, WAKER_CORE, 0)

SEC("tp_btf/softirq_entry")
int wakeup_softirq_entry(u64 *ctx)
{
	return on_softirq(ctx[0]);
}

SEC("tp_btf/softirq_exit")
int wakeup_softirq_exit(u64 *ctx)
{
	return after_softirq(ctx[0]);
}

SEC("raw_tp/softirq_entry")
int wakeup_softirq_entry_raw(u64 *ctx)
{
	return on_softirq(ctx[0]);
}

SEC("raw_tp/softirq_exit")
int wakeup_softirq_exit_raw(u64 *ctx)
{
	return after_softirq(ctx[0]);
}

static __always_inline u64 mixed(u64 hash, u64 word)
{
	hash = (hash ^ word) * 0xff51afd7ed558ccdULL;
	return hash ^ hash >> 32;
}

static __always_inline u64 hash_waker(const struct waker *waker)
{
	u64 hash = mixed(0x9e3779b97f4a7c15ULL, waker->ustack);

	hash = mixed(hash, waker->kstack);
	hash = mixed(hash, waker->tid | (u64)waker->tgid << 32);
	hash = mixed(hash, waker->life | (u64)waker->context << 32);
	return mixed(hash, waker->number);
}

/* Whether a task is in a system call: then a softirq may be one that it has raised itself, and runs before the call
 * returns. If it was interrupted in user code, the kernel has stored no number of a call. */
static __always_inline bool in_call(struct task_struct *task)
{
	struct pt_regs *regs;

	if (task_regs)
		return (long)((struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf()))->orig_ax >= 0;
	regs = BPF_CORE_READ(task, stack) + THREAD_SIZE - bpf_core_type_size(struct pt_regs);
	return (long)BPF_CORE_READ(regs, orig_ax) >= 0;
}

/* Where the kernel is entered: by system calls, exceptions and interrupts. Written by user space; 0: not known. */
u64 entries_begin;
u64 entries_end;

/* How many frames belong to what was entered last; the others, if any, to what it interrupted in the kernel. */
__weak int frames_up_to_entry(const struct stack_record *record, u32 frames)
{
	u64 begin = entries_begin, end = entries_end;
	u32 i;

	if (!record)
		return 0;
	barrier_var(frames);
	for (i = 0; i < MAX_FRAMES; i++) {
		if (i >= frames)
			break;
		if (record->frames[i] >= begin && record->frames[i] < end)
			return i + 1;
	}
	return frames;
}

/* Takes the kernel stack of an interrupt; returns whether it interrupted the kernel. */
static __always_inline bool interrupt_stack(void *ctx, struct stack_record *record, u64 *id)
{
	u32 all = kernel_frames(record, bpf_get_stack(ctx, record->frames, KERNEL_STACK_BYTES, 0));
	u32 own = frames_up_to_entry(record, all);

	*id = stack_id(record, own);
	return own < all;
}

static __always_inline enum waker_context waker_context(u32 *number)
{
	struct interrupts *core = this_core();

	*number = 0;
	if (!core)
		return WAKER_THREAD;
	if (core->context != WAKER_THREAD) {
		*number = core->number;
		return core->context;
	}
	if (!core->softirq)
		return WAKER_THREAD;
	*number = core->softirq - 1;
	return WAKER_SOFTIRQ;
}

/* Sets what is to be known of the current context; returns whether it is that of the current task. */
static __always_inline bool note_waker(void *ctx, struct task_struct *current, bool trusted, struct waker *waker)
{
	bool in_kernel = TASK_FIELD(trusted, current, flags) & PF_KTHREAD, by_task, nested;
	u32 slot = CONTEXT_SCHED, number;
	struct stack_record *record = bpf_map_lookup_elem(&stack_scratch, &slot);
	enum waker_context context = waker_context(&number);
	struct thread *own;
	u64 kstack = 0;
	u8 end;

	__builtin_memset(waker, 0, sizeof(*waker));
	waker->context = context;
	waker->number = number;
	by_task = context == WAKER_THREAD;
	if (context == WAKER_SOFTIRQ && TASK_FIELD(trusted, current, pid))
		by_task = in_kernel || (may_be_asked_for(number) && in_call(current));
	if (record && kernel_stacks && context == WAKER_THREAD && !is_shed(SHED_WAKER_STACKS)) {
		kstack = kernel_stack_again(ctx, MEMO_WAKES, record);
	} else if (record && kernel_stacks && context != WAKER_THREAD) { /* needed to know whose deed it is */
		nested = interrupt_stack(ctx, record, &kstack);
		by_task = by_task && !nested;
	}
	waker->kstack = kstack;
	if (!by_task)
		return false;
	waker->tid = TASK_FIELD(trusted, current, pid);
	waker->tgid = TASK_FIELD(trusted, current, tgid);
	own = find_thread(current, trusted);
	if (own)
		waker->life = own->key.life;
	if (record && user_stacks && !in_kernel && !is_shed(SHED_WAKER_STACKS))
		waker->ustack = user_stack(CONTEXT_SCHED, current, waker->tgid, context == WAKER_THREAD, record, &end);
	return true;
}

/* Adds the links of the waker's own chain, up to one of the thread that it wakes. */
__weak int extend_chain(struct chain *chain, const struct chain *own, u32 tid)
{
	u32 i, count;

	if (!chain || !own)
		return 0;
	count = own->count;
	barrier_var(count);
	for (i = 0; i < MAX_WAKERS - 1; i++) {
		if (i + 1 >= chain_depth || i >= count || (own->of[i].waker.tid == tid && tid))
			break;
		chain->of[i + 1] = own->of[i];
		chain->count = i + 2;
	}
	return 0;
}

static __always_inline int on_waking(void *ctx, struct task_struct *task, bool trusted)
{
	struct task_struct *current;
	struct wakeups *w, *own;
	struct chain *chain;
	struct thread *t;
	u32 next, tid, number;
	bool by_task;

	if (!running())
		return 0;
	t = find_thread(task, trusted);
	if (!t || (t->phase != PHASE_BLOCKED && t->phase != PHASE_ON_CPU))
		return 0;
	tid = t->key.tid;
	current = trusted ? bpf_get_current_task_btf() : (void *)bpf_get_current_task();
	if ((u32)TASK_FIELD(trusted, current, pid) == tid) /* it is awake */
		return 0;
	if (measure_timeline) {
		t->waker = bpf_get_current_pid_tgid();
		t->waker_cpu = bpf_get_smp_processor_id();
	}
	if (is_shed(SHED_WAKERS)) {
		if (measure_timeline && waker_context(&number) != WAKER_THREAD)
			t->waker_cpu |= WOKEN_BY_INTERRUPT;
		return 0;
	}
	w = wakeups_of(task, trusted, true);
	if (!w)
		return 0;
	next = ~w->current & 1;
	w->pending = 0;
	w->stacks = stacks_now();
	chain = &w->of[next];
	by_task = note_waker(ctx, current, trusted, &chain->of[0].waker);
	if (measure_timeline && !by_task)
		t->waker_cpu |= WOKEN_BY_INTERRUPT;
	chain->of[0].hash = hash_waker(&chain->of[0].waker);
	chain->of[0].since = 0;
	chain->count = 1;
	if (chain_depth > 1 && by_task) {
		own = wakeups_of(current, trusted, false);
		/* Else it did not wait while the thread did, or its stacks may be forgotten. */
		if (own && t->phase == PHASE_BLOCKED && own->since > t->out && own->stacks == w->stacks) {
			chain->of[0].began = own->began;
			chain->of[0].since = own->since;
			extend_chain(chain, &own->of[own->current & 1], tid);
		}
	}
	barrier();
	w->pending = 1;
	return 0;
}

SEC("tp_btf/sched_waking")
int wakeup_waking(u64 *ctx)
{
	return on_waking(ctx, (void *)ctx[0], true);
}

SEC("raw_tp/sched_waking")
int wakeup_waking_raw(u64 *ctx)
{
	return on_waking(ctx, (void *)ctx[0], false);
}

/* Sends the first `links` links of a chain, unless they are known. */
__weak int send_chain(const struct chain *chain, u32 links, u64 id)
{
	struct chain_record *record;
	u32 zero = 0, one = 1, i;

	if (!chain || bpf_map_lookup_elem(&known_stacks, &id))
		return 0;
	record = bpf_map_lookup_elem(&chain_scratch, &zero);
	if (!record)
		return 0;
	record->type = RECORD_CHAIN;
	record->count = links;
	record->id = id;
	barrier_var(links);
	for (i = 0; i < MAX_WAKERS; i++) {
		if (i >= links)
			break;
		record->of[i] = chain->of[i].waker;
	}
	if (bpf_ringbuf_output(&records, record, sizeof(*record), BPF_RB_NO_WAKEUP)) {
		count(LOST_STACKS);
		return 0;
	}
	if (bpf_map_update_elem(&known_stacks, &id, &one, BPF_NOEXIST) == 0)
		count(NEW_STACKS);
	return 0;
}

static __always_inline void add_part(struct wakeup_sum *to, const struct wakeup_sum *part)
{
	if (part->min < to->min || (!to->count && !to->time))
		to->min = part->min;
	if (part->max > to->max)
		to->max = part->max;
	to->count += part->count;
	to->time += part->time;
}

/* Adds a part of a wait to the table. */
__weak int add_wakeup(struct wakeup_key *given, struct wakeup_sum *part, u64 cut)
{
	struct wakeup_sum *old, sum;
	struct wakeup_key key;
	u32 slot = cut & (SUM_TABLES - 1), place;
	void *table;

	if (!given || !part)
		return 0;
	/* Copied: see offcpu_flush(). */
	key = *given;
	sum = *part;
	table = bpf_map_lookup_elem(&wakeups, &slot);
	old = table ? bpf_map_lookup_elem(table, &key) : NULL;
	if (old) {
		add_part(old, &sum);
	} else if (table && bpf_map_update_elem(table, &key, &sum, BPF_NOEXIST) == 0) {
		count(NEW_WAKEUPS);
	} else {
		place = slot * WAIT_STATES + (key.origin.state & (WAIT_STATES - 1));
		old = bpf_map_lookup_elem(&lost_wakeups, &place);
		if (old)
			add_part(old, &sum);
		count(LOST_WAKEUPS);
	}
	return 0;
}

struct wait_parts {
	struct wakeup_key key;
	struct wakeup_sum part;
	u64 cut;
	u64 out;  /* begin of the part that is not told yet: at first the wait's */
	u64 rest; /* … and its end */
	u64 waits;
	u64 whole;
};

/* Adds the part of a wait in which the last one of the first `at` + 1 links was not in its own last wait; returns whether
 * something is left: what that wait and the part have in common. */
__weak int add_link(struct wait_parts *parts, const struct chain *chain, u32 at)
{
	u64 begin, end;

	if (!parts || !chain)
		return 0;
	at &= MAX_WAKERS - 1;
	parts->key.chain = mixed(parts->key.chain, chain->of[at].hash) | 1;
	begin = chain->of[at].began;
	end = chain->of[at].since;
	if (begin < parts->out)
		begin = parts->out;
	if (end > parts->rest)
		end = parts->rest;
	if (at + 1 >= chain->count || end <= begin)
		end = begin = parts->out; /* all of it */
	parts->part.time = parts->rest - parts->out - (end - begin);
	parts->part.count = 0;
	parts->part.min = ~0ULL;
	parts->part.max = 0;
	if (begin == end) {
		parts->part.count = parts->waits;
		parts->part.min = parts->whole;
		parts->part.max = parts->whole;
	}
	if (parts->part.time || parts->part.count) {
		send_chain(chain, at + 1, parts->key.chain);
		add_wakeup(&parts->key, &parts->part, parts->cut);
	}
	parts->out = begin;
	parts->rest = end;
	return begin < end;
}

/* The interval that began at t->out ends now; see offcpu_ended(). */
int wakeup_ended(struct thread *t, struct wakeups *w, u64 now, u64 waits)
{
	struct wait_parts parts = {};
	struct chain *chain = NULL;
	u32 i;

	if (!t || !t->out || !was_blocked(t))
		return 0;
	parts.rest = t->out + blocked_part(t, now);
	if (w) {
		w->since = 0;
		if (w->pending && waits == 1 && t->woken) {
			w->began = t->out;
			w->since = parts.rest;
			w->current = ~w->current & 1;
			chain = &w->of[w->current & 1];
		}
		w->pending = 0;
	}
	if (!wait_counts(t, now))
		return 0;
	parts.key.origin = t->key;
	if (t->late_out == t->out) /* never both 0: see offcpu_ended() */
		parts.key.origin.ustack = t->late_ustack;
	parts.cut = t->cut;
	parts.out = t->out;
	parts.waits = waits;
	parts.whole = parts.rest - parts.out;
	if (chain) {
		for (i = 0; i < MAX_WAKERS; i++)
			if (!add_link(&parts, chain, i))
				return 0;
		return 0;
	}
	/* Nobody is known to have ended it. */
	parts.part.time = parts.whole;
	parts.part.count = waits;
	parts.part.min = parts.whole;
	parts.part.max = parts.whole;
	add_wakeup(&parts.key, &parts.part, parts.cut);
	return 0;
}
