/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel types used by the probes, for CO-RE: only the fields that are read, relocated at load time against
 * the running kernel's BTF. Written by hand instead of a generated vmlinux.h, so that a build needs no BTF and no
 * bpftool. Constants are from the kernel's UAPI (linux/bpf.h) and, for task states, include/linux/sched.h. */
#ifndef STALLSCOPE_KERNEL_H
#define STALLSCOPE_KERNEL_H

typedef unsigned char __u8;
typedef signed char __s8;
typedef unsigned short __u16;
typedef short __s16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u64 u64;
typedef __u32 u32;
typedef __u16 u16;
typedef __u8 u8;
typedef __s64 s64;
typedef __s32 s32;
typedef __s16 s16;
typedef int pid_t;
typedef _Bool bool;
#define true 1
#define false 0

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PROG_ARRAY = 3,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_F_NO_PREALLOC = 1,
	BPF_F_MMAPABLE = 1024,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
};

/* include/linux/sched.h; the values used here are unchanged since 4.14. */
enum {
	TASK_INTERRUPTIBLE = 0x1,
	TASK_UNINTERRUPTIBLE = 0x2,
	TASK_STOPPED = 0x4,
	TASK_TRACED = 0x8,
	EXIT_DEAD = 0x10,
	EXIT_ZOMBIE = 0x20,
	TASK_DEAD = 0x80,
	TASK_WAKING = 0x200,
	TASK_NOLOAD = 0x400,
	PF_KTHREAD = 0x200000,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct seq_file;

struct sched_entity {
	u64 sum_exec_runtime;
};

/* arch/x86/include/asm/processor.h */
struct thread_struct {
	unsigned long fsbase;
};

struct upid {
	int nr;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

/* kernel/locking/rwsem.c: `count` is 0 while nobody holds it or waits for it. Kernels with PREEMPT_RT have none. */
struct atomic_word {
	long counter;
};

struct rw_semaphore {
	struct atomic_word count;
	struct atomic_word owner;
};

struct mm_struct {
	struct rw_semaphore mmap_lock;
};

struct task_struct {
	unsigned int __state;
	int on_cpu;
	unsigned int flags;
	pid_t pid;
	pid_t tgid;
	int prio;
	int wake_cpu;
	char comm[16];
	void *stack;
	struct sched_entity se;
	struct mm_struct *mm;
	struct task_struct *group_leader;
	unsigned long nvcsw;
	unsigned long nivcsw;
	struct pid *thread_pid;
	int pagefault_disabled;
	struct thread_struct thread;
};

/* Before 5.14 the field was `volatile long state` (renamed by 2f064a59a11f, "sched: Change task_struct::state"). */
struct task_struct___pre_5_14 {
	long state;
};

/* What counts the writers of mmap_lock, since 6.4 (5e31275cc997), and since 6.13 (eb449bd96954). */
struct mm_struct___number {
	int mm_lock_seq;
};

struct seqcount {
	unsigned int sequence;
};

struct mm_struct___count {
	struct seqcount mm_lock_seq;
};

struct pt_regs {
	unsigned long bp;
	unsigned long bx;
	unsigned long r10;
	unsigned long cx;
	unsigned long dx;
	unsigned long si;
	unsigned long di;
	unsigned long orig_ax;
	unsigned long ip;
	unsigned long cs;
	unsigned long sp;
};

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#pragma clang attribute pop

#endif
