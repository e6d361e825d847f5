/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Locks on files that traced threads asked for in vain, without waiting in the kernel: whoever asks again and again waits
 * for the lock all the same. The kernel reports each request, with its result, at the tracepoints of
 * include/trace/events/filelock.h. */
#include "maps.bpf.h"
#include "thread.bpf.h"

char LICENSE[] SEC("license") = "GPL";

#define EAGAIN 11
/* include/linux/filelock.h; before 6.3 (5970e15dbcfe) in include/linux/fs.h. */
#define FL_FLOCK 2
#define FL_OFDLCK 1024

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct super_block {
	u32 s_dev;
};

struct inode {
	struct super_block *i_sb;
	unsigned long i_ino;
};

struct file_lock_core {
	unsigned int flc_flags;
	unsigned char flc_type;
};

struct file_lock {
	struct file_lock_core c;
	s64 fl_start;
	s64 fl_end;
};

/* Before 6.9 (a69ce85ec9af). */
struct file_lock___flat {
	unsigned int fl_flags;
	unsigned char fl_type;
};

#pragma clang attribute pop

/* A request, of one thread. Mirrored in tracers/engines/ebpf/refused_locks.py. */
struct refused_lock {
	u64 inode;
	s64 first;
	s64 last;
	u32 dev;
	u32 tgid;
	u32 flags; /* FL_FLOCK, FL_OFDLCK, or neither: a lock of fcntl(2) */
	u32 type;  /* F_RDLCK, F_WRLCK */
	u32 tid;
	u32 unused;
};

struct refusals {
	u64 count;
	u64 last; /* when the last one was, CLOCK_MONOTONIC ns */
};

/* When it is full, requests for other locks are only counted, as lost, until user space has taken these out. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct refused_lock);
	__type(value, struct refusals);
} refused_locks SEC(".maps");

static __always_inline int asked(struct inode *inode, struct file_lock *lock, int result)
{
	struct file_lock___flat *flat = (void *)lock;
	struct task_struct *task = bpf_get_current_task_btf();
	struct refused_lock key = {};
	struct refusals first = { .count = 1 }, *found;

	/* Since 6.13 (838a10bd2ebf), the verifier takes tracepoints' arguments for NULL where they may be. */
	if (result != -EAGAIN || !inode || !lock || !find_thread(task, true))
		return 0;
	key.inode = inode->i_ino;
	key.dev = inode->i_sb->s_dev;
	key.tgid = task->tgid;
	key.tid = task->pid;
	key.first = lock->fl_start;
	key.last = lock->fl_end;
	if (bpf_core_field_exists(struct file_lock, c)) {
		key.flags = lock->c.flc_flags;
		key.type = lock->c.flc_type;
	} else {
		key.flags = BPF_CORE_READ(flat, fl_flags);
		key.type = BPF_CORE_READ(flat, fl_type);
	}
	key.flags &= FL_FLOCK | FL_OFDLCK;
	first.last = bpf_ktime_get_ns();
	found = bpf_map_lookup_elem(&refused_locks, &key);
	if (found) {
		__sync_fetch_and_add(&found->count, 1);
		found->last = first.last;
	} else if (bpf_map_update_elem(&refused_locks, &key, &first, BPF_ANY)) {
		count(LOST_REFUSALS);
	}
	return 0;
}

SEC("tp_btf/posix_lock_inode")
int refused_fcntl_lock(u64 *ctx)
{
	return asked((void *)ctx[0], (void *)ctx[1], ctx[2]);
}

SEC("tp_btf/flock_lock_inode")
int refused_flock(u64 *ctx)
{
	return asked((void *)ctx[0], (void *)ctx[1], ctx[2]);
}
