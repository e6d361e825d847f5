/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Individual scheduler events, for a timeline. sched.bpf.c passes switches and wake-ups, with the times that it uses in
 * the accounts, so that both agree.
 *
 * A kernel ring buffer takes a lock and calls user space for each record. Here every core has its own ring in one
 * array, which user space maps and reads in bulk; there are no wake-ups. All writers run with interrupts off, under the
 * lock of a run queue or in the interrupt of a timer, so that none interrupts another. */
#include "maps.bpf.h"
#include "measures.bpf.h"
#include "thread.bpf.h"

char LICENSE[] SEC("license") = "GPL";

struct event_array {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct sched_event);
};
struct event_array timeline_events SEC(".maps");

struct event_rings {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct event_ring);
};
struct event_rings timeline_rings SEC(".maps");

/* This core's ring if it has room; else NULL, and `events` are counted as lost (a slot can hold two). */
static __always_inline struct event_ring *ring_with_room(u32 cpu, u32 events)
{
	struct event_ring *ring = bpf_map_lookup_elem(&timeline_rings, &cpu);

	if (!ring)
		return NULL;
	if (ring->head - *(volatile u64 *)&ring->tail >= ring->slots) {
		ring->lost += events;
		ring->pending += events;
		return NULL;
	}
	return ring;
}

static __always_inline struct sched_event *next_slot(const struct event_ring *ring)
{
	u32 place = ring->first + (ring->head & (ring->slots - 1));

	return bpf_map_lookup_elem(&timeline_events, &place);
}

static __always_inline void written(struct event_ring *ring, struct sched_event *event, u32 cpu)
{
	event->cpu = cpu;
	event->lost = ring->pending;
	ring->pending = 0;
	/* User space reads the slots before the head; x86 keeps stores in order. */
	barrier();
	*(volatile u64 *)&ring->head = ring->head + 1;
}

int timeline_switch(struct thread *next, u64 now, u64 comes, u32 leaves, u32 left)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct event_ring *ring = ring_with_room(cpu, 1);
	struct sched_event *event;

	if (!ring)
		return 0;
	event = next_slot(ring);
	if (!event)
		return 0;
	event->time = now;
	event->out = 0;
	if (next && next->out && next->key.state != WAIT_PREEMPTED && next->key.state != WAIT_NEW) {
		event->out = next->out;
		event->woken = next->woken;
		event->ustack = next->late_out == next->out ? next->late_ustack : next->key.ustack;
		event->kstack = next->key.kstack;
		event->what = next->key.life;
		event->wait = next->key.state;
		event->first = next->out == next->start;
	}
	event->tid = comes;
	event->other = leaves;
	event->prio = comes >> 32;
	event->left = left;
	event->kind = SWITCHED;
	written(ring, event, cpu);
	return 0;
}

int timeline_wakeup(struct thread *t, u64 now, u64 where)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct event_ring *ring = ring_with_room(cpu, 1);
	struct sched_event *event;

	if (!ring || !t)
		return 0;
	event = next_slot(ring);
	if (!event)
		return 0;
	event->time = now;
	event->out = t->waker_cpu & ~WOKEN_BY_INTERRUPT;
	event->first = !!(t->waker_cpu & WOKEN_BY_INTERRUPT);
	event->woken = where >> 32;
	event->tid = t->key.tid;
	event->other = t->waker;
	event->prio = where;
	event->kind = WOKEN;
	written(ring, event, cpu);
	return 0;
}

int timeline_sample(struct origin *of, u64 now)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct event_ring *ring = ring_with_room(cpu, 1);
	struct sched_event *event;

	if (!ring || !of)
		return 0;
	event = next_slot(ring);
	if (!event)
		return 0;
	event->time = now;
	event->out = 0;
	event->ustack = of->ustack;
	event->kstack = of->kstack;
	event->tid = of->tid;
	event->what = of->life;
	event->kind = SAMPLED;
	written(ring, event, cpu);
	return 0;
}

/* Notes the waker and its core: sched_wakeup can fire on another core, in an interrupt. */
static __always_inline int on_waking(struct task_struct *task, bool trusted)
{
	struct thread *t;

	if (!running() || measure_wakeup) /* that measure notes it, and knows more */
		return 0;
	t = find_thread(task, trusted);
	if (t) {
		t->waker = bpf_get_current_pid_tgid();
		t->waker_cpu = bpf_get_smp_processor_id();
	}
	return 0;
}

/* A new thread and its first wake-up. Not at sched_process_fork, which fires with interrupts on. */
static __always_inline int on_new(struct task_struct *task, bool trusted)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct sched_event *event;
	struct event_ring *ring;
	struct thread *t;

	if (!running())
		return 0;
	t = find_thread(task, trusted);
	if (!t || t->key.state != WAIT_NEW)
		return 0;
	ring = ring_with_room(cpu, 2);
	if (!ring)
		return 0;
	event = next_slot(ring);
	if (!event)
		return 0;
	event->time = bpf_ktime_get_ns();
	event->out = t->start;
	event->woken = next_cpu(task, trusted);
	event->tid = t->key.tid;
	event->other = bpf_get_current_pid_tgid();
	event->what = t->key.tgid;
	event->prio = TASK_FIELD(trusted, task, prio);
	event->kind = MADE;
	written(ring, event, cpu);
	return 0;
}

SEC("tp_btf/sched_waking")
int timeline_waking(u64 *ctx)
{
	return on_waking((void *)ctx[0], true);
}

SEC("tp_btf/sched_wakeup_new")
int timeline_new(u64 *ctx)
{
	return on_new((void *)ctx[0], true);
}

SEC("raw_tp/sched_waking")
int timeline_waking_raw(u64 *ctx)
{
	return on_waking((void *)ctx[0], false);
}

SEC("raw_tp/sched_wakeup_new")
int timeline_new_raw(u64 *ctx)
{
	return on_new((void *)ctx[0], false);
}
