/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* On-CPU samples: a clock or a hardware counter interrupts a thread, and its stacks are counted.
 *
 * The program runs in an interrupt or an NMI, possibly during a stack walk of another program on this CPU: it has its
 * own scratch memory, and its map is preallocated. */
#include "kernel_stack.bpf.h"
#include "measures.bpf.h"
#include "thread.bpf.h"
#include "user_stack.bpf.h"

char LICENSE[] SEC("license") = "GPL";

struct sample_sum {
	u64 samples;
	u64 events; /* represented by them; with a budget, the samples that they stand for */
};

DEFINE_SUM_TABLES(samples, sizeof(struct origin), sizeof(struct sample_sum));

/* Samples that found no room in a table. */
struct sample_losses {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SUM_TABLES);
	__type(key, u32);
	__type(value, u64);
};
struct sample_losses lost_samples SEC(".maps");

/* struct bpf_perf_event_data of linux/bpf_perf_event.h; the registers are those of the interrupted code
 * (arch/x86/include/uapi/asm/ptrace.h). */
struct sample_context {
	u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
	u64 period;
	u64 address;
};

static __always_inline bool in_user_code(const struct sample_context *ctx)
{
	return (u16)ctx->cs == USER_CS || (u16)ctx->cs == USER32_CS;
}

/* Walks from the interrupted registers, or from those that the thread had when it entered the kernel. */
static __always_inline u64 sampled_user_stack(struct sample_context *ctx, struct task_struct *task, u32 tgid,
					      struct stack_record *record)
{
	u64 ip = ctx->ip, sp = ctx->sp, bp = ctx->bp;
	u16 cs = ctx->cs;
	u8 end;

	if (!in_user_code(ctx))
		cs = task_registers(task, &ip, &sp, &bp);
	return walk_user(CONTEXT_SAMPLE, cs, ip, sp, bp, tgid, false, record, &end);
}

static __always_inline void add_sample(const struct origin *key, u64 events)
{
	struct sample_sum first = { 1, events };
	u32 slot = interval_at(bpf_ktime_get_ns()) & (SUM_TABLES - 1);
	struct sample_sum *sum = NULL;
	void *table;
	u64 *lost;

	table = bpf_map_lookup_elem(&samples, &slot);
	if (table)
		sum = bpf_map_lookup_elem(table, key);
	if (table && !sum && bpf_map_update_elem(table, key, &first, BPF_NOEXIST) == 0) {
		count(NEW_SAMPLES);
		return;
	}
	if (table && !sum)
		sum = bpf_map_lookup_elem(table, key);
	if (sum) {
		/* A thread is on one CPU at a time, but an NMI can interrupt its timer's sample. */
		__sync_fetch_and_add(&sum->samples, 1);
		__sync_fetch_and_add(&sum->events, events);
		return;
	}
	lost = bpf_map_lookup_elem(&lost_samples, &slot);
	if (lost)
		++*lost;
}

static __always_inline int on_sample(struct sample_context *ctx, struct task_struct *task, bool trusted)
{
	struct origin key = { .state = RUNNING };
	struct stack_record *record;
	u32 slot = CONTEXT_SAMPLE;
	struct thread *t;
	u64 now;

	if (!running())
		return 0;
	t = find_thread(task, trusted);
	if (!t || t->phase == PHASE_GONE)
		return 0;
	/* Before the walk, which takes time: when the thread was interrupted. */
	now = bpf_ktime_get_ns();
	record = bpf_map_lookup_elem(&stack_scratch, &slot);
	if (!record)
		return 0;
	key.tid = t->key.tid;
	key.tgid = t->key.tgid;
	key.life = t->key.life;
	if (user_stacks && !(TASK_FIELD(trusted, task, flags) & PF_KTHREAD))
		key.ustack = sampled_user_stack(ctx, task, key.tgid, record);
	if (kernel_stacks && !in_user_code(ctx))
		key.kstack = kernel_stack(ctx, record);
	add_sample(&key, has_budget ? sample_weight : ctx->period);
	if (measure_timeline && timeline_samples)
		timeline_sample(&key, now);
	return 0;
}

SEC("perf_event")
int oncpu_sample(struct sample_context *ctx)
{
	return on_sample(ctx, bpf_get_current_task_btf(), true);
}

SEC("perf_event")
int oncpu_sample_raw(struct sample_context *ctx)
{
	return on_sample(ctx, (void *)bpf_get_current_task(), false);
}
