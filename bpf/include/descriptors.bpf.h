/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a wait in a system call is on: the file, pipe or socket of its descriptor, by the thread's saved registers; in a
 * page fault, the file that is mapped there, or memory. Each one is sent to user space once, like a stack; the key of the
 * wait has its id. */
#ifndef STALLSCOPE_DESCRIPTORS_BPF_H
#define STALLSCOPE_DESCRIPTORS_BPF_H

#include "maps.bpf.h"
#include "sock.bpf.h"
#include "thread.bpf.h"
#include "unwind.bpf.h"

SHARED const volatile bool wait_objects;

/* Objects that have been sent. When it is full, waits on others are on nothing that is known. */
struct object_set {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, u8);
};
SHARED struct object_set known_objects SEC(".maps");

#define PF_IO_WORKER 0x10
#define S_IFMT 0170000
#define S_IFSOCK 0140000
#define S_IFIFO 0010000
#define ANON_INODE 0x09041934 /* ANON_INODE_FS_MAGIC of linux/magic.h */
#define ACCESS_MODES 3	      /* FMODE_READ | FMODE_WRITE */
#define INET 2
#define INET6 10
#define UNIX 1

/* include/uapi/asm/unistd_64.h. */
#define NR_POLL 7
#define NR_FUTEX64 202
#define NR_SELECT 23
#define NR_PSELECT6 270
#define NR_PPOLL 271
#define NO_CALL (~0ULL) /* of the registers of an exception or an interrupt: arch/x86/entry/entry_64.S */
#define SELECT_WORDS 16 /* 1,024 descriptors */
#define MOST_POLLED 16

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct super_block {
	u32 s_dev;
	unsigned long s_magic;
};

struct inode {
	u16 i_mode;
	u32 i_rdev;
	struct super_block *i_sb;
	unsigned long i_ino;
};

struct file {
	struct inode *f_inode;
	unsigned int f_mode;
	void *private_data;
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

struct socket {
	struct sock *sk;
};

struct unix_sock {
	struct sock *peer;
};

struct socket_alloc {
	struct socket socket;
	struct inode vfs_inode;
};

struct vm_area_struct {
	struct file *vm_file;
};

#pragma clang attribute pop

/* bpf_find_vma() (7c7e3d31e785, 5.17). */
enum bpf_func_id___areas {
	BPF_FUNC_find_vma___areas = 180,
};

/* A system call in which a thread waits. */
struct waiting_call {
	u64 number;
	u64 first; /* its arguments */
	u64 second;
	u64 third;
	u64 fourth;
	u32 tgid;
	u32 tid;
	u32 slot; /* enum object_slot */
	u32 pad;
	u64 fault;   /* address of the page fault in which it waits instead; 0: it is in none */
	u64 context; /* of the program: how deep the thread is in the kernel's stack; 0: not known */
};

/* Too large for the BPF stack. One for switches, one for the iterator, which they interrupt. */
struct object_work {
	struct waiting_call call;
	struct object_record record;
};

enum object_slot {
	OBJECT_SCHED,
	OBJECT_ITER,
	OBJECT_SLOTS,
};

struct object_scratch {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, OBJECT_SLOTS);
	__type(key, u32);
	__type(value, struct object_work);
};
SHARED struct object_scratch object_scratch SEC(".maps");

/* Whether the first argument of a call that can wait is a descriptor on which it waits. */
static __always_inline bool takes_descriptor(u64 number)
{
	/* read, write, ioctl, pread64, pwrite64, readv, writev; connect, accept, sendto, recvfrom, sendmsg, recvmsg */
	const u64 low = 1ULL << 0 | 1ULL << 1 | 0x1fULL << 16 | 0x3fULL << 42;
	/* fcntl, flock, fsync, fdatasync, ftruncate, getdents */
	const u64 middle = 1ULL << (72 - 64) | 1ULL << (73 - 64) | 1ULL << (74 - 64) | 1ULL << (75 - 64) |
			   1ULL << (77 - 64) | 1ULL << (78 - 64);

	if (number < 64)
		return low >> number & 1;
	if (number < 128)
		return middle >> (number - 64) & 1;
	switch (number) {
	case 187: /* readahead */
	case 217: /* getdents64 */
	case 232: /* epoll_wait */
	case 242: /* mq_timedsend */
	case 243: /* mq_timedreceive */
	case 277: /* sync_file_range */
	case 281: /* epoll_pwait */
	case 285: /* fallocate */
	case 288: /* accept4 */
	case 295: /* preadv */
	case 296: /* pwritev */
	case 299: /* recvmmsg */
	case 306: /* syncfs */
	case 307: /* sendmmsg */
	case 327: /* preadv2 */
	case 328: /* pwritev2 */
	case 441: /* epoll_pwait2 */
		return true;
	}
	return false;
}

struct polled {
	int fd;
	short events;
	short revents;
};

#define NONE (-1) /* descriptors of a call so far */
#define SEVERAL (-2)

static __always_inline int joined(int found, int fd)
{
	if (fd == NONE || found == fd)
		return found;
	return found == NONE ? fd : SEVERAL;
}

__weak int polled_at(u64 at, int found)
{
	struct polled one;

	if (found == SEVERAL || bpf_probe_read_user(&one, sizeof(one), (void *)at))
		return SEVERAL;
	return joined(found, one.fd < 0 ? NONE : one.fd);
}

/* The one descriptor that poll() waits for; negative if there are none or several. */
__weak int only_polled(u64 fds, u64 count)
{
	int found = NONE;
	u32 i;

	if (count > MOST_POLLED)
		return SEVERAL;
	for (i = 0; i < MOST_POLLED; i++) {
		if (i >= count)
			break;
		found = polled_at(fds + i * sizeof(struct polled), found);
	}
	return found;
}

/* Number of the lowest bit of a word that is not 0. Global, like others here: the verifier checks it once. */
__weak u32 lowest_bit(u64 word)
{
	u32 bit = 0;

	if (!(word & 0xffffffff)) {
		word >>= 32;
		bit += 32;
	}
	if (!(word & 0xffff)) {
		word >>= 16;
		bit += 16;
	}
	if (!(word & 0xff)) {
		word >>= 8;
		bit += 8;
	}
	if (!(word & 0xf)) {
		word >>= 4;
		bit += 4;
	}
	if (!(word & 3)) {
		word >>= 2;
		bit += 2;
	}
	return bit + !(word & 1);
}

static __always_inline u64 set_word(u64 set, u32 index)
{
	u64 word = 0;

	if (set && bpf_probe_read_user(&word, sizeof(word), (void *)(set + index * sizeof(word))))
		return ~0ULL; /* it cannot be read */
	return word;
}

__weak int selected_at(const struct waiting_call *call, u32 index, int found)
{
	u64 word, left;

	if (!call || found == SEVERAL)
		return SEVERAL;
	word = set_word(call->second, index) | set_word(call->third, index) | set_word(call->fourth, index);
	left = call->first - index * 64;
	if (left < 64)
		word &= (1ULL << (left & 63)) - 1;
	if (!word)
		return found;
	return word & (word - 1) ? SEVERAL : joined(found, index * 64 + lowest_bit(word));
}

/* The same for select(). */
__weak int only_selected(const struct waiting_call *call)
{
	int found = NONE;
	u64 count;
	u32 i;

	if (!call)
		return NONE;
	count = call->first;
	if (count > SELECT_WORDS * 64)
		return SEVERAL;
	for (i = 0; i < SELECT_WORDS; i++) {
		if (i * 64 >= count)
			break;
		found = selected_at(call, i, found);
	}
	return found;
}

/* The descriptor on which a call waits; negative without one. */
__weak int waits_on_descriptor(const struct waiting_call *call)
{
	if (!call)
		return NONE;
	if (takes_descriptor(call->number))
		return (int)call->first;
	if (call->slot != OBJECT_SCHED) /* its memory is not ours to read */
		return NONE;
	if (call->number == NR_POLL || call->number == NR_PPOLL)
		return only_polled(call->first, call->second);
	if (call->number == NR_SELECT || call->number == NR_PSELECT6)
		return only_selected(call);
	return NONE;
}

/* A file of a task. `direct`: a compile-time constant; the task's type is known to the verifier, which then lets its
 * fields be read without a helper. */
static __always_inline struct file *open_file(struct task_struct *task, u32 fd, bool direct)
{
	struct task_struct___files *owner = (void *)task;
	struct file **slots, *file = NULL;
	struct fdtable *table;
	u32 count;

	if (direct) {
		table = owner->files->fdt;
		count = table->max_fds;
		slots = table->fd;
	} else {
		table = BPF_CORE_READ(owner, files, fdt);
		count = BPF_CORE_READ(table, max_fds);
		slots = BPF_CORE_READ(table, fd);
	}
	if (fd >= count) /* of a task without files it is 0 */
		return NULL;
	bpf_probe_read_kernel(&file, sizeof(file), slots + fd);
	return file;
}

static __always_inline u64 mix(u64 hash, u64 word)
{
	hash = (hash ^ word) * 0xff51afd7ed558ccdULL;
	return hash ^ hash >> 32;
}

/* What tells an open file from others that were at the same address before. */
static __always_inline u64 file_mark(struct file *file, struct inode *inode)
{
	u64 mark = mix((u64)inode, BPF_CORE_READ(inode, i_ino));
	struct socket *socket;
	struct sock *sk;

	if ((BPF_CORE_READ(inode, i_mode) & S_IFMT) != S_IFSOCK)
		return mark;
	socket = BPF_CORE_READ(file, private_data);
	sk = BPF_CORE_READ(socket, sk);
	mark = mix(mark, BPF_CORE_READ(sk, __sk_common.skc_daddr));
	return mix(mark, BPF_CORE_READ(sk, __sk_common.skc_dport) | BPF_CORE_READ(sk, __sk_common.skc_state) << 16);
}

/* The inode of the socket at the other end. */
static __always_inline u64 unix_peer(struct sock *sk)
{
	struct unix_sock *own = (void *)sk;
	struct socket_alloc *at;
	struct sock *peer;

	if (!bpf_core_type_exists(struct unix_sock) || !bpf_core_type_exists(struct socket_alloc))
		return 0;
	peer = BPF_CORE_READ(own, peer);
	if (!peer)
		return 0;
	/* struct socket_alloc begins with the socket. */
	at = (void *)BPF_CORE_READ(peer, sk_socket);
	return at ? BPF_CORE_READ(at, vfs_inode.i_ino) : 0;
}

__weak int describe_socket(struct object_record *record, u64 private_data)
{
	struct socket *socket = (void *)private_data;
	struct sock *sk = BPF_CORE_READ(socket, sk);

	if (!record || !sk)
		return 0;
	record->family = BPF_CORE_READ(sk, __sk_common.skc_family);
	record->socket_type = BPF_CORE_READ(sk, sk_type);
	record->protocol = BPF_CORE_READ(sk, sk_protocol);
	record->state = BPF_CORE_READ(sk, __sk_common.skc_state);
	record->netns = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
	if (record->family == UNIX) {
		record->peer = unix_peer(sk);
		return 0;
	}
	if (record->family != INET && record->family != INET6)
		return 0;
	record->local_port = BPF_CORE_READ(sk, __sk_common.skc_num);
	record->remote_port = __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport));
	if (record->family == INET6 && bpf_core_field_exists(struct sock_common, skc_v6_daddr)) {
		BPF_CORE_READ_INTO(&record->remote, sk, __sk_common.skc_v6_daddr);
		BPF_CORE_READ_INTO(&record->local, sk, __sk_common.skc_v6_rcv_saddr);
	} else if (record->family == INET) {
		*(u32 *)record->remote = BPF_CORE_READ(sk, __sk_common.skc_daddr);
		*(u32 *)record->local = BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr);
	}
	return 0;
}

__weak u64 hash_object(const struct object_record *record)
{
	u64 hash = 0x9e3779b97f4a7c15ULL;

	if (!record)
		return 0;
	hash = mix(hash, record->inode);
	hash = mix(hash, (u64)record->dev << 32 | record->mode);
	hash = mix(hash, (u64)record->access << 32 | record->state);
	hash = mix(hash, record->peer);
	hash = mix(hash, (u64)record->local_port << 16 | record->remote_port);
	hash = mix(hash, *(const u64 *)record->local);
	hash = mix(hash, *(const u64 *)(record->local + 8));
	hash = mix(hash, *(const u64 *)record->remote);
	hash = mix(hash, *(const u64 *)(record->remote + 8));
	return hash | 1;
}

/* Sends a file that is not known yet; returns its id, 0 if there is no room for it. */
__weak u64 send_object(struct object_record *record, u64 id)
{
	u8 one = 1;

	if (!record)
		return 0;
	if (bpf_map_lookup_elem(&known_objects, &id))
		return id;
	record->id = id;
	if (bpf_map_update_elem(&known_objects, &id, &one, BPF_NOEXIST)) {
		if (bpf_map_lookup_elem(&known_objects, &id))
			return id;
		count(LOST_OBJECTS);
		return 0;
	}
	if (bpf_ringbuf_output(&records, record, sizeof(*record), BPF_RB_NO_WAKEUP)) {
		bpf_map_delete_elem(&known_objects, &id); /* it is sent when it occurs again */
		count(LOST_OBJECTS);
		return 0;
	}
	return id;
}

/* The id of an open file, which is sent if it is not known yet. */
__weak u64 describe_file(struct object_work *work, u64 at, u32 fd)
{
	struct file *file = (void *)at;
	struct object_record *record;
	struct super_block *super;
	struct inode *inode;
	u64 id;

	if (!work)
		return 0;
	record = &work->record;
	__builtin_memset(record, 0, sizeof(*record));
	inode = BPF_CORE_READ(file, f_inode);
	super = BPF_CORE_READ(inode, i_sb);
	record->type = RECORD_OBJECT;
	record->tgid = work->call.tgid;
	record->tid = work->call.tid;
	record->fd = fd;
	record->inode = BPF_CORE_READ(inode, i_ino);
	record->mode = BPF_CORE_READ(inode, i_mode);
	record->rdev = BPF_CORE_READ(inode, i_rdev);
	record->dev = BPF_CORE_READ(super, s_dev);
	record->magic = BPF_CORE_READ(super, s_magic);
	if ((record->mode & S_IFMT) == S_IFIFO)
		record->access = BPF_CORE_READ(file, f_mode) & ACCESS_MODES;
	if ((record->mode & S_IFMT) == S_IFSOCK)
		describe_socket(record, (u64)BPF_CORE_READ(file, private_data));
	record->address = work->call.fault;
	id = hash_object(record);
	if (record->magic == ANON_INODE) /* all of them share one inode */
		id = mix(mix(id, at), (u64)work->call.tgid << 32 | fd) | 1;
	if (work->call.fault) /* user space tells what is mapped from the same file behind a descriptor */
		id = mix(id, 1) | 1;
	return send_object(record, id);
}

/* The same for memory without a file: one of each process. */
__weak u64 describe_memory(struct object_work *work)
{
	struct object_record *record;

	if (!work)
		return 0;
	record = &work->record;
	__builtin_memset(record, 0, sizeof(*record));
	record->type = RECORD_OBJECT;
	record->tgid = work->call.tgid;
	record->tid = work->call.tid;
	record->address = work->call.fault;
	return send_object(record, mix(hash_object(record), work->call.tgid) | 1);
}
/* The id of the file on which a thread waits; 0: it has none. A thread often waits on the same one again. */
__weak u64 find_object(struct thread *t, struct object_work *work, u64 at, u32 fd)
{
	struct file *file = (void *)at;
	struct inode *inode;
	u64 mark;

	if (!t || !work || !file)
		return 0;
	inode = BPF_CORE_READ(file, f_inode);
	mark = file_mark(file, inode) ^ !!work->call.fault;
	if (t->on_file != at || t->on_mark != mark) {
		t->on_object = describe_file(work, at, fd);
		t->on_file = at;
		t->on_mark = mark;
	}
	return t->on_object;
}

/* Whether a wait in this state can be for a file. */
static __always_inline bool may_be_on_object(u32 state)
{
	return state == WAIT_INTERRUPTIBLE || state == WAIT_UNINTERRUPTIBLE || state == WAIT_IDLE ||
	       state == WAIT_OTHER;
}

/* The registers with which a task called the kernel. Not of 32-bit code, whose calls have other numbers, nor of a kernel's
 * worker that has none; futex() is left out: most waits are in it, and it has no descriptor. */
static __always_inline bool called_with(struct waiting_call *call, struct pt_regs *regs)
{
	u16 cs;

	if (task_regs) {
		call->number = regs->orig_ax;
		cs = regs->cs;
		call->first = regs->di;
		call->second = regs->si;
		call->third = regs->dx;
		call->fourth = regs->r10;
	} else {
		call->number = BPF_CORE_READ(regs, orig_ax);
		cs = BPF_CORE_READ(regs, cs);
		call->first = BPF_CORE_READ(regs, di);
		call->second = BPF_CORE_READ(regs, si);
		call->third = BPF_CORE_READ(regs, dx);
		call->fourth = BPF_CORE_READ(regs, r10);
	}
	return cs == USER_CS && call->number != NR_FUTEX64;
}

static __always_inline struct object_work *object_work(u32 slot, u64 pid_tgid)
{
	struct object_work *work = bpf_map_lookup_elem(&object_scratch, &slot);

	if (!work)
		return NULL;
	work->call.tgid = pid_tgid >> 32;
	work->call.tid = pid_tgid;
	work->call.slot = slot;
	work->call.fault = 0;
	return work;
}

/* Notes how deep the current thread, which is switched out, is in the kernel's stack: by the program's context, which is
 * there. Stored in memory, a pointer becomes a number. */
static __always_inline void note_context(void *ctx)
{
	u32 slot = OBJECT_SCHED;
	struct object_work *work = bpf_map_lookup_elem(&object_scratch, &slot);

	if (work)
		*(volatile u64 *)&work->call.context = (u64)ctx;
}

/* Several descriptors of poll() or select(): one object of each process. */
__weak u64 describe_several(struct object_work *work)
{
	struct object_record *record;

	if (!work)
		return 0;
	record = &work->record;
	__builtin_memset(record, 0, sizeof(*record));
	record->type = RECORD_OBJECT;
	record->tgid = work->call.tgid;
	record->tid = work->call.tid;
	record->fd = SEVERAL;
	return send_object(record, mix(mix(hash_object(record), record->tgid), SEVERAL) | 1);
}

struct mapped_file {
	u64 file;
};

static long mapped_there(struct task_struct *task, struct vm_area_struct *area, struct mapped_file *found)
{
	found->file = (u64)BPF_CORE_READ(area, vm_file);
	return 0;
}

/* What the current thread waits on in a page fault at this address. Nothing while its address space is being changed, and
 * nothing after a fault that came before the trace. */
__weak u64 object_of_fault(struct thread *t, struct object_work *work, u64 address)
{
	struct mapped_file found = {};

	/* Here, too: before 6.8 (2afae08c9dcb), global functions are checked even if nothing calls them. */
	if (!bpf_core_enum_value_exists(enum bpf_func_id___areas, BPF_FUNC_find_vma___areas))
		return 0;
	if (!t || !work || !address)
		return 0;
	if (bpf_find_vma(bpf_get_current_task_btf(), address, mapped_there, &found, 0))
		return 0;
	work->call.fault = address;
	return found.file ? find_object(t, work, found.file, 0) : describe_memory(work);
}

/* Whether the current thread is still in its last page fault in the kernel: the registers that were saved then are on the
 * part of the stack that is in use, and are the same. Other functions may have left them there as they were; user space
 * compares with the kernel's functions, which it has. */
static __always_inline bool in_inner_fault(struct thread *t, const struct waiting_call *call)
{
	u64 ip = 0;

	if (!t->inner_fault)
		return false;
	if (call->context && t->inner_regs > call->context)
		bpf_probe_read_kernel(&ip, sizeof(ip), &((struct pt_regs *)t->inner_regs)->ip);
	if (ip == t->inner_ip)
		return true;
	t->inner_fault = 0;
	return false;
}

/* Whether a wait outside of system calls, of the current thread, can be asked for. */
static __always_inline bool finds_areas(const struct waiting_call *call)
{
	return task_regs && call->slot == OBJECT_SCHED && !is_shed(SHED_FAULTS) &&
	       bpf_core_enum_value_exists(enum bpf_func_id___areas, BPF_FUNC_find_vma___areas);
}

/* What a thread waits on in the call that it has made with `regs`; see open_file(). */
static __always_inline u64 object_of(struct thread *t, struct object_work *work, struct task_struct *task,
				     struct pt_regs *regs, bool direct)
{
	int fd;

	if (!called_with(&work->call, regs))
		return 0;
	if (work->call.number == NO_CALL)
		return finds_areas(&work->call) ? object_of_fault(t, work, t->fault) : 0;
	if (finds_areas(&work->call) && in_inner_fault(t, &work->call))
		return object_of_fault(t, work, t->inner_fault);
	fd = waits_on_descriptor(&work->call);
	if (fd == SEVERAL)
		return describe_several(work);
	return fd < 0 ? 0 : find_object(t, work, (u64)open_file(task, fd, direct), fd);
}

/* The same for the current thread, which is switched out. Global, for the sake of its caller's stack. */
__weak u64 object_of_wait(struct thread *t)
{
	struct object_work *work = object_work(OBJECT_SCHED, bpf_get_current_pid_tgid());
	struct task_struct *task;
	struct pt_regs *regs;

	if (!t || !work)
		return 0;
	if (task_regs) {
		task = bpf_get_current_task_btf();
		if (task->flags & (PF_KTHREAD | PF_IO_WORKER))
			return 0;
		return object_of(t, work, task, (struct pt_regs *)bpf_task_pt_regs(task), true);
	}
	task = (void *)bpf_get_current_task();
	if (BPF_CORE_READ(task, flags) & (PF_KTHREAD | PF_IO_WORKER))
		return 0;
	regs = BPF_CORE_READ(task, stack) + THREAD_SIZE - bpf_core_type_size(struct pt_regs);
	return object_of(t, work, task, regs, false);
}

#endif
