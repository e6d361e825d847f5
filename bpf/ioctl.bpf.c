/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ioctl calls: on what, which command, how long, and what the thread did meanwhile.
 *
 * The dedicated tracepoints of the system call are used: other system calls cost nothing more. The programs at them run
 * with preemption off. The split into running, blocked and waiting for a core is by the thread's waits between entry and
 * return, as sched.bpf.c sees them. A wait that it infers only after the call, from a switch that the kernel did not
 * report, counts as running. */
#include "call_buckets.bpf.h"
#include "ioctl.bpf.h"
#include "kernel_stack.bpf.h"
#include "measures.bpf.h"
#include "thread.bpf.h"
#include "user_stack.bpf.h"

char LICENSE[] SEC("license") = "GPL";

#define NAME_LEN 32
#define TYPE_LEN 16

#define MAJOR(dev) ((dev) >> 20)
#define S_IFMT 0170000
#define S_IFCHR 0020000
#define S_IFBLK 0060000

/* NVIDIA's driver (nv-ioctl-numbers.h, nv_escape.h, nvos.h): escapes, and where in their arguments are the RM control's
 * number or the object's class, and the RM's own status. */
#define NV_XFER 211
#define NV_CONTROL 0x2a
#define NV_ALLOC 0x2b
#define NV_FREE 0x29
#define NV_CONTROL_NUMBER 8
#define NV_CONTROL_STATUS 28
#define NV_ALLOC_CLASS 12
#define NV_FREE_STATUS 12
#define NV_ALLOC_STATUS 28	/* NVOS21_PARAMETERS */
#define NV_ALLOC_LONG 48	/* size of NVOS64_PARAMETERS */
#define NV_ALLOC_LONG_STATUS 40 /* … and its status */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct file_system_type {
	const char *name;
};

struct super_block {
	u32 s_dev;
	struct file_system_type *s_type;
};

struct inode {
	u16 i_mode;
	u32 i_rdev;
	struct super_block *i_sb;
};

struct qstr {
	const unsigned char *name;
};

struct dentry {
	struct qstr d_name;
};

struct path {
	struct dentry *dentry;
};

struct file {
	struct path f_path;
	struct inode *f_inode;
	const void *f_op;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct task_struct___files {
	struct files_struct *files;
};

#pragma clang attribute pop

/* Contexts of the tracepoints: /sys/kernel/tracing/events/syscalls/sys_enter_ioctl/format. */
struct enter_context {
	u64 common;
	u64 number;
	u64 fd;
	u64 command;
	u64 argument;
};

struct exit_context {
	u64 common;
	u64 number;
	s64 result;
};

struct ioctl_name {
	char type[TYPE_LEN]; /* of the file system */
	char name[NAME_LEN]; /* of the file, without its folder */
};

/* What a call was when an interval ended. */
struct ioctl_record {
	u32 type;
	u32 pad;
	u64 at; /* then */
	struct ioctl_call call;
};

/* By origin: time on a core and calls that returned; or, of waits, their two parts. */
struct ioctl_sum {
	u64 time;
	u64 runnable;
	u64 count;
};

/* A command as one thread calls it. */
struct ioctl_kind {
	u32 tid;
	u32 tgid;
	u32 life;
	u32 state; /* like that of an origin */
};

/* Calls that returned. */
struct ioctl_times {
	u64 count;
	u64 total;   /* in their last interval */
	u64 earlier; /* in the intervals before */
	u64 blocked;
	u64 runnable;
	u64 min; /* from their beginning to their return */
	u64 max;
	u64 latencies[CALL_BUCKETS];
};

struct ioctl_failure {
	struct ioctl_kind kind;
	u32 error;  /* errno; 0: the driver's own status */
	u32 status; /* … of NVIDIA's RM */
};

#define IOCTL_MAP(map, key_type, value_type)                                                                           \
	struct map##_table {                                                                                           \
		__uint(type, BPF_MAP_TYPE_HASH);                                                                       \
		__uint(max_entries, 1);                                                                                \
		__type(key, key_type);                                                                                 \
		__type(value, value_type);                                                                             \
	};                                                                                                             \
	struct map##_table map SEC(".maps")

/* Sums, taken out by user space meanwhile: see SUM_TABLES. */

IOCTL_MAP(ioctl_targets, struct ioctl_target, u32); /* their numbers */
IOCTL_MAP(ioctl_names, struct ioctl_file, struct ioctl_name);
DEFINE_SUM_TABLES(ioctl_sums, sizeof(struct origin), sizeof(struct ioctl_sum));
DEFINE_SUM_TABLES(ioctl_times, sizeof(struct ioctl_kind), sizeof(struct ioctl_times));
DEFINE_SUM_TABLES(ioctl_failures, sizeof(struct ioctl_failure), sizeof(u64));

struct ioctl_scratch {
	struct ioctl_call no_call; /* stay zero */
	struct ioctl_times no_times;
	struct ioctl_name name;
};

struct ioctl_scratch_array {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct ioctl_scratch);
};
struct ioctl_scratch_array ioctl_scratch SEC(".maps");

/* A call that returned, or a wait inside a call: for who was inside at the same time. */
struct ioctl_event {
	u64 begin;
	u64 end; /* of a wait: when it could run again */
	u32 number;
	u32 tgid;
	u32 tid;
	u32 is_wait;
};

struct ioctl_event_array {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct ioctl_event);
};
struct ioctl_event_array ioctl_events SEC(".maps");

/* For a timeline: where the calls among these events were made, at the same places. */
struct ioctl_place {
	u64 ustack; /* 0: not known */
	u32 life;
	u32 pad;
};

struct ioctl_place_array {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct ioctl_place);
};
struct ioctl_place_array ioctl_places SEC(".maps");

/* As in timeline.bpf.c, but two rings per core, one for calls and one for waits: some kernels (see on_exit() in
 * sched.bpf.c) can switch a thread out while it writes a call. */
struct ioctl_event_rings {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct event_ring);
};
struct ioctl_event_rings ioctl_rings SEC(".maps");

enum ioctl_loss {
	LOST_IOCTLS,	    /* no room: not counted at all */
	LOST_IOCTL_STACKS,  /* no room: the time is the call's, but not that of a stack */
	LOST_IOCTL_ERRORS,  /* no room: the error is not told */
	LOST_IOCTL_TARGETS, /* no room: counted under the number 0 */
	LOST_IOCTL_CUTS,    /* no room: the time up to the end of an interval is lost */
	UNSEEN_RETURNS,	    /* the next call of the thread came first */
	IOCTL_LOSSES,
};

struct ioctl_loss_array {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, IOCTL_LOSSES);
	__type(key, u32);
	__type(value, u64);
};
struct ioctl_loss_array ioctl_losses SEC(".maps");

/* The last number that a target was given. Not a variable: user space writes all of them at once. */
struct ioctl_number_count {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
};
struct ioctl_number_count ioctl_numbers SEC(".maps");

#define MOST_NUMBERS (1U << 24) /* see NUMBER_SHIFT */

const volatile u32 nvidia_major = 195;
const volatile bool record_ioctl_places;

static __always_inline void lose(enum ioctl_loss which, u64 number)
{
	u32 key = which;
	u64 *value = bpf_map_lookup_elem(&ioctl_losses, &key);

	if (value)
		*value += number;
}

static __always_inline struct file *file_of(struct task_struct *task, u32 fd, bool trusted)
{
	struct task_struct___files *owner = (void *)task;
	struct fdtable *table = trusted ? owner->files->fdt : BPF_CORE_READ(owner, files, fdt);
	struct file **files = trusted ? table->fd : BPF_CORE_READ(table, fd);
	struct file *file = NULL;

	if (fd < (trusted ? table->max_fds : BPF_CORE_READ(table, max_fds)))
		bpf_probe_read_kernel(&file, sizeof(file), files + fd);
	return file;
}

/* Fields of one object that are less than WINDOW bytes apart are read together: a read costs as much as a lookup. */
#define WINDOW 96

struct near {
	u64 words[WINDOW / sizeof(u64)];
};

/* The bytes from the field at the lower of the two offsets on, which is returned. */
static __always_inline u32 read_near(struct near *near, const void *object, u32 one, u32 other)
{
	u32 first = one < other ? one : other;

	bpf_probe_read_kernel(near, sizeof(*near), object + first);
	return first;
}

static __always_inline void read_file(struct file *file, struct ioctl_file *found)
{
	u32 ops = bpf_core_field_offset(struct file, f_op), inode_at = bpf_core_field_offset(struct file, f_inode);
	u32 mode = bpf_core_field_offset(struct inode, i_mode), rdev = bpf_core_field_offset(struct inode, i_rdev);
	struct near near;
	struct inode *inode;
	u32 first;

	if (ops < inode_at + WINDOW - 8 && inode_at < ops + WINDOW - 8) {
		first = read_near(&near, file, ops, inode_at);
		found->ops = *(u64 *)((void *)&near + (ops - first));
		inode = *(struct inode **)((void *)&near + (inode_at - first));
	} else {
		found->ops = (u64)BPF_CORE_READ(file, f_op);
		inode = BPF_CORE_READ(file, f_inode);
	}
	if (mode < rdev && rdev < mode + WINDOW - 8) {
		first = read_near(&near, inode, mode, rdev);
		found->mode = *(u16 *)((void *)&near + (mode - first)) & S_IFMT;
		found->device = *(u32 *)((void *)&near + (rdev - first));
	} else {
		found->mode = BPF_CORE_READ(inode, i_mode) & S_IFMT;
		found->device = BPF_CORE_READ(inode, i_rdev);
	}
	if (found->mode != S_IFCHR && found->mode != S_IFBLK)
		found->device = BPF_CORE_READ(inode, i_sb, s_dev);
}

static __always_inline u32 user_word(u64 address)
{
	u32 word = 0;

	bpf_probe_read_user(&word, sizeof(word), (void *)address);
	return word;
}

/* NVIDIA's driver looks only at the number in a command: _IOC_NR. The real one may be behind the argument. */
static __always_inline void read_nvidia(struct ioctl_call *call, struct ioctl_target *target)
{
	u32 number = target->command & 0xff, size = target->command >> 16 & 0x3fff;

	if (number == NV_XFER) {
		struct {
			u32 command;
			u32 size;
			u64 pointer;
		} xfer = {};

		if (bpf_probe_read_user(&xfer, sizeof(xfer), (void *)call->argument))
			return;
		number = xfer.command & 0xff;
		size = xfer.size;
		target->command = number;
		call->argument = xfer.pointer;
	}
	if (number == NV_CONTROL) {
		target->detail = user_word(call->argument + NV_CONTROL_NUMBER);
		call->status = NV_CONTROL_STATUS;
	} else if (number == NV_ALLOC) {
		target->detail = user_word(call->argument + NV_ALLOC_CLASS);
		call->status = size == NV_ALLOC_LONG ? NV_ALLOC_LONG_STATUS : NV_ALLOC_STATUS;
	} else if (number == NV_FREE) {
		call->status = NV_FREE_STATUS;
	}
}

/* The thread's entry; NULL where there is no room for one. */
static __always_inline struct ioctl_call *call_of(u32 tid)
{
	struct ioctl_call *call = bpf_map_lookup_elem(&ioctl_calls, &tid);
	struct ioctl_scratch *scratch;
	u32 zero = 0;

	if (call)
		return call;
	scratch = bpf_map_lookup_elem(&ioctl_scratch, &zero);
	if (!scratch)
		return NULL;
	bpf_map_update_elem(&ioctl_calls, &tid, &scratch->no_call, BPF_NOEXIST);
	return bpf_map_lookup_elem(&ioctl_calls, &tid);
}

/* Keeps the names of what is called on, once for each. */
static __always_inline void keep_name(struct file *file, const struct ioctl_file *key)
{
	struct ioctl_scratch *scratch;
	u32 zero = 0;

	if (bpf_map_lookup_elem(&ioctl_names, key))
		return;
	scratch = bpf_map_lookup_elem(&ioctl_scratch, &zero);
	if (!scratch)
		return;
	__builtin_memset(&scratch->name, 0, sizeof(scratch->name));
	bpf_probe_read_kernel_str(scratch->name.type, TYPE_LEN, BPF_CORE_READ(file, f_inode, i_sb, s_type, name));
	bpf_probe_read_kernel_str(scratch->name.name, NAME_LEN, BPF_CORE_READ(file, f_path.dentry, d_name.name));
	bpf_map_update_elem(&ioctl_names, key, &scratch->name, BPF_NOEXIST);
}

/* The target's number; a new one if it was not seen before. `file`: NULL if there is none. */
static __always_inline u32 number_of(const struct ioctl_target *target, struct file *file)
{
	u32 *known = bpf_map_lookup_elem(&ioctl_targets, target), *last, number, zero = 0;

	if (known)
		return *known;
	last = bpf_map_lookup_elem(&ioctl_numbers, &zero);
	if (last && *(volatile u32 *)last < MOST_NUMBERS - 1) {
		number = __sync_fetch_and_add(last, 1) + 1;
		if (file)
			keep_name(file, &target->file);
		bpf_map_update_elem(&ioctl_targets, target, &number, BPF_NOEXIST);
		known = bpf_map_lookup_elem(&ioctl_targets, target); /* another core may have been faster */
		if (known && *known < MOST_NUMBERS)
			return *known;
	}
	lose(LOST_IOCTL_TARGETS, 1);
	return 0;
}

static __always_inline bool same_target(const struct ioctl_target *a, const struct ioctl_target *b)
{
	return a->file.ops == b->file.ops && a->file.device == b->file.device && a->file.mode == b->file.mode &&
	       a->command == b->command && a->detail == b->detail;
}

/* The call goes on in the interval that begins at `at`; what it was before is sent. Of a thread that is switched out
 * then, its record knows the wait. */
static __always_inline void cut_call(struct ioctl_call *call, u64 at)
{
	struct ioctl_record *r;

	if (!intervals || call->cut == at)
		return;
	r = bpf_ringbuf_reserve(&records, sizeof(*r), 0);
	if (r) {
		r->type = RECORD_IOCTL;
		r->pad = 0;
		r->at = at;
		bpf_probe_read_kernel(&r->call, sizeof(r->call), call);
		bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	} else {
		lose(LOST_IOCTL_CUTS, 1);
	}
	*(volatile u64 *)&call->cut = at; /* first: user space looks at it after it has read the rest */
	barrier();
	call->since = at;
	call->blocked = 0;
	call->runnable = 0;
}

int ioctl_cut(struct thread *t, u64 at)
{
	struct ioctl_call *call;
	u32 tid;

	if (!t)
		return 0;
	tid = t->key.tid;
	call = bpf_map_lookup_elem(&ioctl_calls, &tid);
	if (call && call->began)
		cut_call(call, at);
	return 0;
}

static __always_inline int on_enter(struct enter_context *ctx, struct task_struct *task, bool trusted)
{
	struct ioctl_target target = {};
	struct stack_record *record;
	u32 slot = CONTEXT_SYSCALL;
	struct ioctl_call *call;
	struct thread *t;
	struct file *file;
	u8 end;

	if (!running())
		return 0;
	t = find_thread(task, trusted);
	if (!t)
		return 0;
	call = call_of(t->key.tid);
	if (!call) {
		lose(LOST_IOCTLS, 1);
		return 0;
	}
	if (call->began) {
		lose(UNSEEN_RETURNS, 1);
		cut_call(call, interval_at(bpf_ktime_get_ns()));
		*(volatile u64 *)&call->began = 0;
		barrier();
	}
	if (is_shed(SHED_IOCTLS))
		return 0;
	call->blocked = 0;
	call->runnable = 0;
	call->argument = ctx->argument;
	call->status = 0;
	call->origin.ustack = 0;
	call->origin.tid = t->key.tid;
	call->origin.tgid = t->key.tgid;
	call->origin.life = t->key.life;
	target.command = ctx->command;
	file = file_of(task, ctx->fd, trusted);
	if (file)
		read_file(file, &target.file);
	if (file && MAJOR(target.file.device) == nvidia_major)
		read_nvidia(call, &target);
	if (!call->number || !same_target(&target, &call->target)) {
		call->number = number_of(&target, file);
		call->target = target;
	}
	call->origin.state = RUNNING | call->number << NUMBER_SHIFT;
	if (user_stacks && measure_calls && !ioctl_rows && !calls_inside(t))
		call->status |= IOCTL_OUTSIDE;
	if (user_stacks && (ioctl_rows || measure_calls)) {
		record = bpf_map_lookup_elem(&stack_scratch, &slot);
		if (record)
			call->origin.ustack = user_stack(CONTEXT_SYSCALL, task, t->key.tgid, true, record, &end);
		if (measure_calls && record && end == WALK_IN_CALL)
			call->origin.ustack = calls_stack(t);
	}
	call->since = bpf_ktime_get_ns();
	call->cut = interval_at(call->since);
	barrier();
	*(volatile u64 *)&call->began = call->since;
	return 0;
}

/* Tables that are nearly full are taken out. They have this many times fewer entries than the sums. */
#define SMALL_TABLE 32

static __always_inline void count_new(u32 entries)
{
	u32 key = NEW_IOCTLS;
	u64 *value = bpf_map_lookup_elem(&counters, &key);

	if (value)
		*value += entries;
}

static __always_inline struct ioctl_kind kind_of(const struct ioctl_call *call)
{
	struct ioctl_kind kind = { call->origin.tid, call->origin.tgid, call->origin.life, call->origin.state };

	return kind;
}

static __always_inline void add_failure(const struct ioctl_call *call, u32 error, u32 status, u32 slot)
{
	struct ioctl_failure failure = { kind_of(call), error, status };
	void *table = bpf_map_lookup_elem(&ioctl_failures, &slot);
	u64 none = 0, *number;

	number = table ? bpf_map_lookup_elem(table, &failure) : NULL;
	if (table && !number) {
		if (!bpf_map_update_elem(table, &failure, &none, BPF_NOEXIST))
			count_new(SMALL_TABLE);
		number = bpf_map_lookup_elem(table, &failure);
	}
	if (number)
		__sync_fetch_and_add(number, 1);
	else
		lose(LOST_IOCTL_ERRORS, 1);
}

/* Only the thread itself writes the sums of its origins. */
static __always_inline void add_sum(const struct origin *origin, u64 time, u64 runnable, u64 calls, u32 slot)
{
	void *table = bpf_map_lookup_elem(&ioctl_sums, &slot);
	struct ioctl_sum *sum = table ? bpf_map_lookup_elem(table, origin) : NULL;

	if (sum) {
		sum->time += time;
		sum->runnable += runnable;
		sum->count += calls;
	} else {
		struct ioctl_sum first = { time, runnable, calls };

		if (table && !bpf_map_update_elem(table, origin, &first, BPF_NOEXIST))
			count_new(1);
		else
			lose(LOST_IOCTL_STACKS, 1);
	}
}

/* Also written by the thread alone. */
static __always_inline struct ioctl_times *times_of(const struct ioctl_call *call, u32 slot)
{
	struct ioctl_kind kind = kind_of(call);
	void *table = bpf_map_lookup_elem(&ioctl_times, &slot);
	struct ioctl_times *times = table ? bpf_map_lookup_elem(table, &kind) : NULL;
	struct ioctl_scratch *scratch;
	u32 zero = 0;

	if (times || !table)
		return times;
	scratch = bpf_map_lookup_elem(&ioctl_scratch, &zero);
	if (!scratch)
		return NULL;
	if (!bpf_map_update_elem(table, &kind, &scratch->no_times, BPF_NOEXIST))
		count_new(SMALL_TABLE);
	return bpf_map_lookup_elem(table, &kind);
}

static __always_inline void add_place(const struct ioctl_call *call, u32 place)
{
	struct ioctl_place *at = bpf_map_lookup_elem(&ioctl_places, &place);

	if (!at)
		return;
	at->ustack = call->origin.ustack;
	at->life = call->origin.life;
}

static __always_inline void add_event(const struct ioctl_call *call, u64 begin, u64 end, u32 is_wait)
{
	u32 place = 2 * bpf_get_smp_processor_id() + is_wait;
	struct event_ring *ring = bpf_map_lookup_elem(&ioctl_rings, &place);
	struct ioctl_event *event;

	if (!ring)
		return;
	if (ring->head - *(volatile u64 *)&ring->tail >= ring->slots) {
		ring->lost++;
		return;
	}
	place = ring->first + (ring->head & (ring->slots - 1));
	event = bpf_map_lookup_elem(&ioctl_events, &place);
	if (!event)
		return;
	event->begin = begin;
	event->end = end;
	event->number = call->number;
	event->tgid = call->origin.tgid;
	event->tid = call->origin.tid;
	event->is_wait = is_wait;
	if (record_ioctl_places && !is_wait)
		add_place(call, place);
	/* User space reads the slots before the head; x86 keeps stores in order. */
	barrier();
	*(volatile u64 *)&ring->head = ring->head + 1;
}

static __always_inline bool has_rows(const struct ioctl_call *call)
{
	return ioctl_rows || (call->status & IOCTL_OUTSIDE);
}

static __always_inline void count_call(const struct ioctl_call *call, u64 began, u64 now, u32 slot)
{
	struct ioctl_times *times = times_of(call, slot);
	u64 whole = now - began, part = now - call->since;
	u32 bucket;

	if (!times) {
		lose(LOST_IOCTLS, 1);
		return;
	}
	if (!times->count || whole < times->min)
		times->min = whole;
	if (whole > times->max)
		times->max = whole;
	times->count++;
	times->total += part;
	times->earlier += whole - part;
	times->blocked += call->blocked;
	times->runnable += call->runnable;
	bucket = call_bucket(whole);
	if (bucket < CALL_BUCKETS)
		times->latencies[bucket]++;
	add_event(call, began, now, 0);
	if (user_stacks && has_rows(call)) /* else it follows from these times, or is a part of a function's call */
		add_sum(&call->origin, part - call->blocked - call->runnable, 0, 1, slot);
}

static __always_inline void count_failure(const struct ioctl_call *call, s64 result, u32 slot)
{
	u32 place = call->status & ~IOCTL_OUTSIDE, status;

	if (result < 0) {
		add_failure(call, -result, 0, slot);
	} else if (place) {
		status = user_word(call->argument + place);
		if (status)
			add_failure(call, 0, status, slot);
	}
}

/* A thread that is not traced has no call. Some kernels (see on_exit() in sched.bpf.c) can switch the thread out in the
 * middle of this: no wait may be added to the call that is not in its time. */
static __always_inline int on_return(struct exit_context *ctx)
{
	u32 tid = bpf_get_current_pid_tgid();
	struct ioctl_call *call;
	u64 began, now;
	u32 slot;

	if (!running()) /* it goes on at the trace's end */
		return 0;
	call = bpf_map_lookup_elem(&ioctl_calls, &tid);
	if (!call)
		return 0;
	began = call->began;
	if (!began) /* begun before the trace */
		return 0;
	if (intervals)
		cut_call(call, interval_at(bpf_ktime_get_ns()));
	*(volatile u64 *)&call->began = 0;
	barrier();
	now = bpf_ktime_get_ns();
	slot = call->cut & (SUM_TABLES - 1);
	count_call(call, began, now, slot);
	if (measure_calls)
		calls_ioctl(&call->origin, began, now);
	count_failure(call, ctx->result, slot);
	return 0;
}

/* Whether the thread is inside a call. */
int ioctl_inside(struct thread *t)
{
	struct ioctl_call *call;
	u32 tid;

	if (!t)
		return 0;
	tid = t->key.tid;
	call = bpf_map_lookup_elem(&ioctl_calls, &tid);
	return call && call->began;
}

int ioctl_gone(struct thread *t)
{
	u32 tid;

	if (!t)
		return 0;
	tid = t->key.tid;
	bpf_map_delete_elem(&ioctl_calls, &tid);
	return 0;
}

/* See wait_ended() in sched.bpf.c. The user stack is that of the call. */
int ioctl_waited(struct thread *t, u64 now)
{
	u64 blocked, runnable;
	struct ioctl_call *call;
	struct origin origin;
	u32 tid;

	if (!t || !t->out)
		return 0;
	tid = t->key.tid;
	call = bpf_map_lookup_elem(&ioctl_calls, &tid);
	if (!call || !call->began || t->out < call->since)
		return 0;
	blocked = blocked_part(t, now);
	runnable = now - t->out - blocked;
	call->blocked += blocked;
	call->runnable += runnable;
	if (blocked)
		add_event(call, t->out, t->out + blocked, 1);
	if (!has_rows(call))
		return 0;
	origin = call->origin;
	origin.kstack = t->key.kstack;
	origin.state = t->key.state | call->number << NUMBER_SHIFT;
	add_sum(&origin, blocked, runnable, 0, call->cut & (SUM_TABLES - 1));
	return 0;
}

SEC("tp/syscalls/sys_enter_ioctl")
int ioctl_enter(struct enter_context *ctx)
{
	on_enter(ctx, bpf_get_current_task_btf(), true);
	return KEEP;
}

SEC("tp/syscalls/sys_enter_ioctl")
int ioctl_enter_raw(struct enter_context *ctx)
{
	on_enter(ctx, (void *)bpf_get_current_task(), false);
	return KEEP;
}

SEC("tp/syscalls/sys_exit_ioctl")
int ioctl_return(struct exit_context *ctx)
{
	on_return(ctx);
	return KEEP;
}

SEC("tp/syscalls/sys_exit_ioctl")
int ioctl_return_raw(struct exit_context *ctx)
{
	on_return(ctx);
	return KEEP;
}
