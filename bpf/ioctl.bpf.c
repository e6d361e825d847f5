/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ioctl calls: on what, which command, how long, and what the thread did meanwhile.
 *
 * The dedicated tracepoints of the system call are used: other system calls cost nothing more. The programs at them run
 * with preemption off. The split into running, blocked and waiting for a core is by the thread's waits between entry and
 * return, as sched.bpf.c sees them. A wait that it infers only after the call, from a switch that the kernel did not
 * report, counts as running. */
#include "kernel_stack.bpf.h"
#include "measures.bpf.h"
#include "thread.bpf.h"
#include "user_stack.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* Latencies are counted in buckets: 4 per factor of two, from 256 ns on. Mirrored in tracers/measures/ioctl.py. */
#define IOCTL_SHIFT 8
#define IOCTL_OCTAVES 28
#define IOCTL_BUCKETS (4 * IOCTL_OCTAVES)
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

/* What an ioctl is called on. `ops` tells kinds of files without a device apart. */
struct ioctl_file {
	u64 ops;
	u32 device; /* of a device its number, of another file that of its file system */
	u32 mode;   /* S_IFMT; 0: no kind, or no file */
};

struct ioctl_target {
	struct ioctl_file file;
	u32 command;
	u32 detail; /* of an NVIDIA command: number of the RM control, or class of the object */
};

struct ioctl_site {
	struct origin origin;
	struct ioctl_target target;
};

struct ioctl_sum {
	u64 count;
	u64 total;
	u64 blocked;
	u64 runnable;
	u64 min;
	u64 max;
	u32 latencies[IOCTL_BUCKETS];
};

/* A thread's present call, or its last one. */
struct ioctl_call {
	u64 began;   /* 0: it has returned */
	u64 blocked; /* by its waits that have ended */
	u64 runnable;
	u64 argument; /* of NVIDIA's driver: the parameters */
	u32 status;   /* place of the RM's status in them; 0: none */
	u32 fd;
	struct ioctl_site site;
};

/* A command as one process calls it. */
struct ioctl_kind {
	struct ioctl_target target;
	u32 tgid;
	u32 pad;
};

struct ioctl_failure {
	struct ioctl_kind kind;
	u32 error;  /* errno; 0: the driver's own status */
	u32 status; /* … of NVIDIA's RM */
};

struct ioctl_name {
	char type[TYPE_LEN]; /* of the file system */
	char name[NAME_LEN]; /* of the file, without its folder */
};

#define IOCTL_MAP(map, key_type, value_type)                                                                           \
	struct map##_table {                                                                                           \
		__uint(type, BPF_MAP_TYPE_HASH);                                                                       \
		__uint(max_entries, 1);                                                                                \
		__type(key, key_type);                                                                                 \
		__type(value, value_type);                                                                             \
	};                                                                                                             \
	struct map##_table map SEC(".maps")

IOCTL_MAP(ioctl_calls, u32, struct ioctl_call); /* by thread */
IOCTL_MAP(ioctl_sums, struct ioctl_site, struct ioctl_sum);
IOCTL_MAP(ioctl_waits, struct ioctl_site, struct wait_sum);
IOCTL_MAP(ioctl_failures, struct ioctl_failure, u64);
IOCTL_MAP(ioctl_names, struct ioctl_file, struct ioctl_name);

struct ioctl_scratch {
	struct ioctl_call no_call; /* stay zero */
	struct ioctl_sum no_sum;
	struct ioctl_name name;
};

struct ioctl_scratch_array {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct ioctl_scratch);
};
struct ioctl_scratch_array ioctl_scratch SEC(".maps");

enum ioctl_loss {
	LOST_IOCTLS,	   /* no room: not counted at all */
	LOST_IOCTL_WAITS,  /* no room: the time is the call's, but not that of a stack */
	LOST_IOCTL_ERRORS, /* no room: the error is not told */
	UNSEEN_RETURNS,	   /* the next call of the thread came first */
	IOCTL_LOSSES,
};

struct ioctl_loss_array {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, IOCTL_LOSSES);
	__type(key, u32);
	__type(value, u64);
};
struct ioctl_loss_array ioctl_losses SEC(".maps");

const volatile u32 nvidia_major = 195;

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

static __always_inline void read_file(struct file *file, struct ioctl_file *found)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);

	found->ops = (u64)BPF_CORE_READ(file, f_op);
	found->mode = BPF_CORE_READ(inode, i_mode) & S_IFMT;
	if (found->mode == S_IFCHR || found->mode == S_IFBLK)
		found->device = BPF_CORE_READ(inode, i_rdev);
	else
		found->device = BPF_CORE_READ(inode, i_sb, s_dev);
}

static __always_inline u32 user_word(u64 address)
{
	u32 word = 0;

	bpf_probe_read_user(&word, sizeof(word), (void *)address);
	return word;
}

/* NVIDIA's driver looks only at the number in a command: _IOC_NR. The real one may be behind the argument. */
static __always_inline void read_nvidia(struct ioctl_call *call)
{
	u32 number = call->site.target.command & 0xff, size = call->site.target.command >> 16 & 0x3fff;

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
		call->site.target.command = number;
		call->argument = xfer.pointer;
	}
	if (number == NV_CONTROL) {
		call->site.target.detail = user_word(call->argument + NV_CONTROL_NUMBER);
		call->status = NV_CONTROL_STATUS;
	} else if (number == NV_ALLOC) {
		call->site.target.detail = user_word(call->argument + NV_ALLOC_CLASS);
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

static __always_inline int on_enter(struct enter_context *ctx, struct task_struct *task, bool trusted)
{
	struct stack_record *record;
	u32 slot = CONTEXT_SYSCALL;
	struct ioctl_call *call;
	struct thread *t;
	struct file *file;
	u8 end;

	if (!running())
		return 0;
	t = find_thread(task, trusted);
	record = bpf_map_lookup_elem(&stack_scratch, &slot);
	if (!t || !record)
		return 0;
	call = call_of(t->key.tid);
	if (!call) {
		lose(LOST_IOCTLS, 1);
		return 0;
	}
	if (call->began)
		lose(UNSEEN_RETURNS, 1);
	__builtin_memset(call, 0, sizeof(*call));
	call->fd = ctx->fd;
	call->argument = ctx->argument;
	call->site.origin.tid = t->key.tid;
	call->site.origin.tgid = t->key.tgid;
	call->site.origin.execs = t->key.execs;
	call->site.origin.state = RUNNING;
	call->site.target.command = ctx->command;
	file = file_of(task, ctx->fd, trusted);
	if (file)
		read_file(file, &call->site.target.file);
	if (file && MAJOR(call->site.target.file.device) == nvidia_major)
		read_nvidia(call);
	if (user_stacks)
		call->site.origin.ustack = user_stack(CONTEXT_SYSCALL, task, t->key.tgid, true, record, &end);
	call->began = bpf_ktime_get_ns();
	return 0;
}

/* Index into `latencies`. Global, so that its paths are not multiplied by its callers'. */
__weak int ioctl_bucket(u64 ns)
{
	u32 octave = 0;

	if (ns >> IOCTL_SHIFT == 0)
		return 0;
	ns >>= IOCTL_SHIFT - 2; /* two bits remain below the highest one of the first octave */
	if (ns >> 2 >> 16) {
		ns >>= 16;
		octave += 16;
	}
	if (ns >> 2 >> 8) {
		ns >>= 8;
		octave += 8;
	}
	if (ns >> 2 >> 4) {
		ns >>= 4;
		octave += 4;
	}
	if (ns >> 2 >> 2) {
		ns >>= 2;
		octave += 2;
	}
	if (ns >> 3) {
		ns >>= 1;
		octave += 1;
	}
	if (ns >> 3) /* octave 32 and above */
		return IOCTL_BUCKETS - 1;
	octave = 4 * octave + (ns & 3);
	return octave < IOCTL_BUCKETS ? octave : IOCTL_BUCKETS - 1;
}

static __always_inline void add_failure(const struct ioctl_kind *kind, u32 error, u32 status)
{
	struct ioctl_failure failure = { .kind = *kind, .error = error, .status = status };
	u64 none = 0, *number = bpf_map_lookup_elem(&ioctl_failures, &failure);

	if (!number) {
		bpf_map_update_elem(&ioctl_failures, &failure, &none, BPF_NOEXIST);
		number = bpf_map_lookup_elem(&ioctl_failures, &failure);
	}
	if (number)
		__sync_fetch_and_add(number, 1);
	else
		lose(LOST_IOCTL_ERRORS, 1);
}

/* Keeps the names of what is called on, once for each. */
static __always_inline void keep_name(struct task_struct *task, const struct ioctl_call *call,
				      struct ioctl_scratch *scratch, bool trusted)
{
	struct ioctl_file key = call->site.target.file;
	struct file *file;

	if (bpf_map_lookup_elem(&ioctl_names, &key))
		return;
	file = file_of(task, call->fd, trusted);
	/* Another thread can have closed it meanwhile. */
	if (!file || (u64)BPF_CORE_READ(file, f_op) != key.ops)
		return;
	__builtin_memset(&scratch->name, 0, sizeof(scratch->name));
	bpf_probe_read_kernel_str(scratch->name.type, TYPE_LEN, BPF_CORE_READ(file, f_inode, i_sb, s_type, name));
	bpf_probe_read_kernel_str(scratch->name.name, NAME_LEN, BPF_CORE_READ(file, f_path.dentry, d_name.name));
	bpf_map_update_elem(&ioctl_names, &key, &scratch->name, BPF_NOEXIST);
}

/* Only the thread itself writes its sums. */
static __always_inline void count_call(struct ioctl_call *call, struct task_struct *task, u64 total, bool trusted)
{
	struct ioctl_sum *sum = bpf_map_lookup_elem(&ioctl_sums, &call->site);
	struct ioctl_scratch *scratch;
	u32 zero = 0, bucket;

	if (!sum) {
		scratch = bpf_map_lookup_elem(&ioctl_scratch, &zero);
		if (scratch) {
			bpf_map_update_elem(&ioctl_sums, &call->site, &scratch->no_sum, BPF_NOEXIST);
			keep_name(task, call, scratch, trusted);
		}
		sum = bpf_map_lookup_elem(&ioctl_sums, &call->site);
	}
	if (!sum) {
		lose(LOST_IOCTLS, 1);
		return;
	}
	if (!sum->count || total < sum->min)
		sum->min = total;
	if (total > sum->max)
		sum->max = total;
	sum->count++;
	sum->total += total;
	sum->blocked += call->blocked;
	sum->runnable += call->runnable;
	bucket = ioctl_bucket(total);
	if (bucket < IOCTL_BUCKETS)
		sum->latencies[bucket]++;
}

static __always_inline void count_failure(const struct ioctl_call *call, s64 result)
{
	struct ioctl_kind kind = { .target = call->site.target, .tgid = call->site.origin.tgid };
	u32 status;

	if (result < 0) {
		add_failure(&kind, -result, 0);
	} else if (call->status) {
		status = user_word(call->argument + call->status);
		if (status)
			add_failure(&kind, 0, status);
	}
}

static __always_inline int on_return(struct exit_context *ctx, struct task_struct *task, bool trusted)
{
	u64 now = bpf_ktime_get_ns();
	struct ioctl_call *call;
	struct thread *t;
	u32 tid;

	if (!running()) /* it goes on at the trace's end */
		return 0;
	t = find_thread(task, trusted);
	if (!t)
		return 0;
	tid = t->key.tid;
	call = bpf_map_lookup_elem(&ioctl_calls, &tid);
	if (!call || !call->began) /* begun before the trace */
		return 0;
	count_call(call, task, now - call->began, trusted);
	count_failure(call, ctx->result);
	call->began = 0;
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
int ioctl_waited(struct thread *t, u64 now, u64 waits)
{
	u64 blocked, runnable;
	struct ioctl_call *call;
	struct ioctl_site site;
	struct wait_sum *sum;
	u32 tid;

	if (!t || !t->out)
		return 0;
	tid = t->key.tid;
	call = bpf_map_lookup_elem(&ioctl_calls, &tid);
	if (!call || !call->began || t->out < call->began)
		return 0;
	site = call->site;
	site.origin.state = t->key.state;
	site.origin.kstack = t->key.kstack;
	blocked = blocked_part(t, now);
	runnable = now - t->out - blocked;
	call->blocked += blocked;
	call->runnable += runnable;
	sum = bpf_map_lookup_elem(&ioctl_waits, &site);
	if (sum) {
		add_waits(sum, waits, blocked, runnable);
	} else {
		struct wait_sum begin = { waits, blocked, blocked, blocked, runnable, runnable, runnable };

		if (bpf_map_update_elem(&ioctl_waits, &site, &begin, BPF_NOEXIST))
			lose(LOST_IOCTL_WAITS, waits);
	}
	return 0;
}

SEC("tp/syscalls/sys_enter_ioctl")
int ioctl_enter(struct enter_context *ctx)
{
	return on_enter(ctx, bpf_get_current_task_btf(), true);
}

SEC("tp/syscalls/sys_exit_ioctl")
int ioctl_return(struct exit_context *ctx)
{
	return on_return(ctx, bpf_get_current_task_btf(), true);
}

SEC("tp/syscalls/sys_enter_ioctl")
int ioctl_enter_raw(struct enter_context *ctx)
{
	return on_enter(ctx, (void *)bpf_get_current_task(), false);
}

SEC("tp/syscalls/sys_exit_ioctl")
int ioctl_return_raw(struct exit_context *ctx)
{
	return on_return(ctx, (void *)bpf_get_current_task(), false);
}
