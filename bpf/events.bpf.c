/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Events that the user names: entries of functions, USDT probes, tracepoints, functions of the kernel. They are counted
 * by thread and stack; nothing is done at a function's return, so that a probe is safe on every function.
 *
 * At uprobes, preemption is on, and tracepoints can come in an interrupt of any program: memory of a CPU is used by one
 * of them at a time. */
#include "ioctl.bpf.h"
#include "kernel_stack.bpf.h"
#include "measures.bpf.h"
#include "own_stack.bpf.h"
#include "thread.bpf.h"
#include "user_stack.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* The number of the probe, which is the cookie, is above the state of the origin. */
DEFINE_SUM_TABLES(event_counts, sizeof(struct origin), sizeof(u64));

/* Whether a program uses the CPU's memory for stack walks. */
struct event_walkers {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
};
struct event_walkers event_walkers SEC(".maps");

enum event_loss {
	LOST_EVENTS,			/* no room: not counted. For each table */
	LOST_EVENT_STACKS = SUM_TABLES, /* the CPU's memory was in use: counted without stacks */
	EVENT_LOSSES,
};

struct event_loss_array {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, EVENT_LOSSES);
	__type(key, u32);
	__type(value, u64);
};
struct event_loss_array event_losses SEC(".maps");

/* Registers at a uprobe: struct pt_regs of arch/x86/include/uapi/asm/ptrace.h. */
struct event_context {
	u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};

static __always_inline void lose_event(u32 which)
{
	u64 *value = bpf_map_lookup_elem(&event_losses, &which);

	if (value)
		__sync_fetch_and_add(value, 1);
}

static __always_inline void add_event(const struct origin *key)
{
	u64 one = 1, *number = NULL;
	void *table;
	u32 slot = 0;

	if (intervals)
		slot = interval_at(bpf_ktime_get_ns()) & (SUM_TABLES - 1);
	table = bpf_map_lookup_elem(&event_counts, &slot);
	if (table)
		number = bpf_map_lookup_elem(table, key);
	if (table && !number && bpf_map_update_elem(table, key, &one, BPF_NOEXIST) == 0) {
		count(NEW_EVENTS);
		return;
	}
	if (table && !number)
		number = bpf_map_lookup_elem(table, key);
	/* An interrupt can come to the same key. */
	if (number)
		__sync_fetch_and_add(number, 1);
	else
		lose_event(LOST_EVENTS + slot);
}

/* The memory for a walk, which `give_record` gives back; NULL: another program uses it. */
static __always_inline struct stack_record *take_record(u32 **busy)
{
	u32 slot = CONTEXT_EVENT, zero = 0;
	struct stack_record *record = bpf_map_lookup_elem(&stack_scratch, &slot);

	*busy = bpf_map_lookup_elem(&event_walkers, &zero);
	if (!record || !*busy)
		return NULL;
	if (__sync_val_compare_and_swap(*busy, 0, 1)) {
		lose_event(LOST_EVENT_STACKS);
		return NULL;
	}
	return record;
}

static __always_inline struct thread *event_thread(struct task_struct *task, bool trusted, struct origin *key,
						   u64 number)
{
	struct thread *t;

	if (!running())
		return NULL;
	t = find_thread(task, trusted);
	if (!t)
		return NULL;
	key->tid = t->key.tid;
	key->tgid = t->key.tgid;
	key->life = t->key.life;
	key->state = RUNNING | (u32)number << NUMBER_SHIFT;
	return t;
}

/* An instruction of a program. */
static __always_inline int on_user_event(struct event_context *ctx, struct task_struct *task, bool trusted)
{
	struct stack_record *record;
	struct origin key = {};
	u32 *busy;
	u8 end;

	if (!event_thread(task, trusted, &key, bpf_get_attach_cookie(ctx)))
		return 0;
	record = user_stacks ? take_record(&busy) : NULL;
	if (record) {
		key.ustack = walk_user(CONTEXT_EVENT, ctx->cs, ctx->ip, ctx->sp, ctx->bp, key.tgid, true, record, &end);
		__sync_lock_test_and_set(busy, 0);
	}
	add_event(&key);
	return 0;
}

/* A place in the kernel. Not `lasting`: what is remembered of a thread's stacks must not change in an interrupt. */
static __always_inline int on_kernel_event(void *ctx, struct task_struct *task, bool trusted)
{
	struct stack_record *record = NULL;
	struct origin key = {};
	u32 *busy;
	u8 end;

	if (!event_thread(task, trusted, &key, bpf_get_attach_cookie(ctx)))
		return 0;
	if (user_stacks || kernel_stacks)
		record = take_record(&busy);
	if (record) {
		if (user_stacks && !(TASK_FIELD(trusted, task, flags) & PF_KTHREAD))
			key.ustack = user_stack(CONTEXT_EVENT, task, key.tgid, false, record, &end);
		if (kernel_stacks)
			key.kstack = kernel_stack(ctx, record);
		__sync_lock_test_and_set(busy, 0);
	}
	add_event(&key);
	return 0;
}

/* Events that are asked about: `asked_…` judges the scope, a program that was compiled for the trace answers, and calls
 * the one that counts. By the highest bits of the cookie, as COOKIE_QUESTIONS of call_cookie.h. A map for each type of
 * programs: the kernel takes one alone. Mirrored in tracers/engines/ebpf/measures/asked_events.py. */
struct event_question_array {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 256);
	__type(key, u32);
	__type(value, u32);
};
struct event_question_array user_questions SEC(".maps");
struct event_question_array tracepoint_questions SEC(".maps");
struct event_question_array kernel_questions SEC(".maps");

static __always_inline int ask_event(void *ctx, void *questions, struct task_struct *task, bool trusted)
{
	u32 slot = 0;

	if (!running() || !find_thread(task, trusted))
		return 0;
	bpf_tail_call(ctx, questions, bpf_get_attach_cookie(ctx) >> 52);
	if (intervals)
		slot = interval_at(bpf_ktime_get_ns()) & (SUM_TABLES - 1);
	lose_event(LOST_EVENTS + slot);
	return 0;
}

#define ASKED_EVENTS(section, name)                                                                                    \
	SEC(section)                                                                                                   \
	int asked_##name(void *ctx)                                                                                    \
	{                                                                                                              \
		return ask_event(ctx, &name##_questions, bpf_get_current_task_btf(), true);                            \
	}                                                                                                              \
	SEC(section)                                                                                                   \
	int asked_##name##_raw(void *ctx)                                                                              \
	{                                                                                                              \
		return ask_event(ctx, &name##_questions, (void *)bpf_get_current_task(), false);                       \
	}

ASKED_EVENTS("uprobe", user)
ASKED_EVENTS("tracepoint", tracepoint)
ASKED_EVENTS("kprobe", kernel)

struct no_programs events_user_tail SEC(".maps");

SEC("uprobe")
int events_user(struct event_context *ctx)
{
	on_own_stack(ctx, &events_user_tail);
	return on_user_event(ctx, bpf_get_current_task_btf(), true);
}

SEC("uprobe")
int events_user_raw(struct event_context *ctx)
{
	on_own_stack(ctx, &events_user_tail);
	return on_user_event(ctx, (void *)bpf_get_current_task(), false);
}

SEC("tracepoint")
int events_tracepoint(void *ctx)
{
	on_kernel_event(ctx, bpf_get_current_task_btf(), true);
	return KEEP;
}

SEC("tracepoint")
int events_tracepoint_raw(void *ctx)
{
	on_kernel_event(ctx, (void *)bpf_get_current_task(), false);
	return KEEP;
}

SEC("kprobe")
int events_kernel(void *ctx)
{
	return on_kernel_event(ctx, bpf_get_current_task_btf(), true);
}

SEC("kprobe")
int events_kernel_raw(void *ctx)
{
	return on_kernel_event(ctx, (void *)bpf_get_current_task(), false);
}
