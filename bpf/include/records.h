/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Data passed from the kernel to user space. tracers/kernel/records.py mirrors it; tests/tracers/kernel/test_records.py
 * compares both with the BTF of the compiled object. All times are CLOCK_MONOTONIC nanoseconds. */
#ifndef STALLSCOPE_RECORDS_H
#define STALLSCOPE_RECORDS_H

#define MAX_FRAMES 127
/* Python functions of a stack: see python.h. */
#define MAX_PYTHON 190
#define STACK_WORDS 512
#define STACK_MASK (STACK_WORDS - 1)
#define COMM_LEN 16
/* Waits for a core are counted by length: bucket 0 is up to 1,024 ns, each next one up to twice as much, the last
 * one all longer waits. */
#define LATENCY_BUCKETS 24
#define LATENCY_SHIFT 10

/* Why a thread is off the CPU, as decided when it was switched out. */
enum wait_state {
	WAIT_PREEMPTED, /* still runnable: preempted or yielded */
	WAIT_INTERRUPTIBLE,
	WAIT_UNINTERRUPTIBLE,
	WAIT_STOPPED,
	WAIT_TRACED,
	WAIT_IDLE,
	WAIT_OTHER,
	WAIT_NEW, /* created, has not run yet */
	WAIT_STATES,
	RUNNING = WAIT_STATES, /* on a CPU when sampled */
};

enum phase {
	PHASE_ON_CPU,
	PHASE_BLOCKED,
	PHASE_RUNNABLE,
	PHASE_GONE, /* exited, and reported */
};

/* Where, or why, a walk up a stack ended. */
enum walk_end {
	WALK_COMPLETE, /* at the thread's start */
	WALK_TOO_DEEP, /* there were more frames */
	WALK_NO_TABLE, /* code without unwind rules, and rbp leads nowhere */
	WALK_NO_RULE,  /* code that its rules do not cover, or not sufficiently */
	WALK_FAULT,    /* memory of the stack could not be read */
	WALK_LOST,     /* the caller's frame would lie below its callee's */
	WALK_NARROW,   /* 32-bit code: its frame pointers lead no further */
	WALK_UNREAD,   /* of a thread found asleep: it ran before its memory was read */
};

/* Of a thread, never of a stack that is sent: the walk ended in the function with a probe that it is in. */
#define WALK_IN_CALL 64

/* With slices, the state in the key of a sum of waits also has the slice, as a number of slices of slice_ns each, whose
 * length was doubled so often. */
#define SLICE_DOUBLED_SHIFT 8
#define SLICE_SHIFT 16

/* A user stack that was not taken, because the probes cost too much. The hashes of stacks are odd. */
#define STACK_SHED 6

/* Where something happened: the key of every measure. A stack is the hash of its frames; 0 for none (kernel thread,
 * switched off, or not known). */
struct origin {
	u64 ustack;
	u64 kstack;
	u64 object; /* of a wait: what it is on, see struct object_record; 0: not known */
	u32 tid;
	u32 tgid;
	u32 life;  /* of the thread, since its last exec: no other has had this number, see next_life() */
	u32 state; /* enum wait_state, or RUNNING */
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

/* Everything known about one thread. Lives in task storage, or in a hash by tid. */
struct thread {
	u64 start;	     /* accounting began */
	u64 since;	     /* the present phase began */
	u64 out;	     /* last switched out */
	u64 woken;	     /* woken from the present wait; 0: not yet */
	u64 exec_runtime;    /* the kernel's count of the thread's CPU time, when its last switch was seen */
	u64 kernel_switches; /* the kernel's count of its switches, at that time */
	u64 on_cpu;	     /* sums of ended phases */
	u64 runnable;
	u64 blocked[WAIT_STATES];
	u64 switches;
	u32 latencies[LATENCY_BUCKETS]; /* ended waits for a core */
	struct origin key;		/* of the present or last wait */
	/* Waits with equal key in a row are summed here; the map is updated when the key changes. */
	struct origin sum_key;
	struct wait_sum sum;
	/* The user stack of the wait that began at `late_out`, walked again when there were more tables. */
	u64 late_out;
	u64 late_ustack;
	u64 cut;	  /* beginning of its interval: see struct cuts */
	u64 lived;	  /* beginning of key.life */
	u8 phase;	  /* enum phase */
	u8 end;		  /* enum walk_end of key.ustack */
	u8 late_end;	  /* … and of late_ustack */
	u8 exiting;	  /* on_exit() is working on it */
	u32 creator;	  /* the thread that created it during the trace; 0: none */
	u32 waker;	  /* last thread that woke it, and its core: with a timeline */
	u32 waker_cpu;	  /* with WOKEN_BY_INTERRUPT */
	u32 first;	  /* its first life, by which its account is known across execs */
	u32 interpreters; /* python_generation when its stack was taken */
	/* The file on which it last waited, and its id: see descriptors.bpf.h. */
	u64 on_file;
	u64 on_mark;
	u64 on_object;
	u64 fault; /* address of its last page fault in user code: see faults.bpf.c */
	/* Its last page fault in the kernel, on memory of the program: the address, where the registers were saved on the
	 * kernel's stack, and the instruction. */
	u64 inner_fault;
	u64 inner_regs;
	u64 inner_ip;
	u64 made_in; /* user stack of the thread that created it, of the same process; 0: not known */
};

#define WOKEN_BY_INTERRUPT (1U << 31) /* the thread was only interrupted, and did not wake the other one */

enum record_type {
	RECORD_STACK = 1,
	RECORD_EXEC,
	RECORD_EXIT,
	RECORD_CUT,    /* like RECORD_EXIT, of a thread that goes on */
	RECORD_IOCTL,  /* a call that goes on: struct ioctl_record */
	RECORD_CHAIN,  /* of wakers: struct chain_record */
	RECORD_LOCK,   /* a lock in memory that processes may share: struct lock_record */
	RECORD_STEP,   /* a Python function is called or returns, perhaps: struct step_hit */
	RECORD_OBJECT, /* what waits are on: struct object_record */
};

struct stack_record {
	u32 type;
	u16 count; /* of words */
	u16 end;   /* enum walk_end, and STACK_HAS_PYTHON */
	u64 id;
	u64 frames[STACK_WORDS]; /* leaf first; then the Python functions */
};

#define STACK_HAS_PYTHON 0x100

/* A file, pipe, socket or device on which a thread waited first. Of sockets also both ends. Of a page fault the file that
 * is mapped there, or memory without a file: then nothing but `address` is known. */
struct object_record {
	u32 type;
	u32 tgid; /* whose descriptor it was */
	u64 id;
	u64 inode;
	u64 magic;   /* of its file system: s_magic */
	u64 peer;    /* of a Unix socket: the other one's inode */
	u64 address; /* of a page fault, which has no descriptor; else 0 */
	u32 dev;     /* of its file system: s_dev */
	u32 rdev;
	u32 mode;
	u32 fd;
	u32 netns;
	u32 access; /* of a pipe's end: 1 reads, 2 writes */
	u16 family;
	u16 socket_type;
	u16 protocol;
	u16 state; /* of the socket: TCP_ESTABLISHED, … */
	u16 local_port;
	u16 remote_port;
	u32 tid; /* … which may have a table of its own */
	u8 local[16];
	u8 remote[16];
};

/* A life ended by an exec; the next one of the thread began. */
struct exec_record {
	u32 type;
	u32 tgid;
	u64 time;
	u64 lived; /* see struct thread */
	u32 life;
	u32 first;
};

/* What runs when a thread is woken. */
enum waker_context {
	WAKER_THREAD,
	WAKER_SOFTIRQ,
	WAKER_DEVICE, /* an interrupt that has a handler */
	WAKER_TIMER,  /* the interrupt of the core's timer */
	WAKER_CORE,   /* another core's request: a function to call, or irq_work */
};

/* Who woke a thread, and where. In an interrupt, whom it interrupted does not matter: tid and tgid are 0. */
struct waker {
	u64 ustack;
	u64 kstack;
	u32 tid;
	u32 tgid;
	u32 life;    /* see struct origin; 0: it is not traced */
	u32 number;  /* of the device's interrupt, or of the softirq */
	u32 context; /* enum waker_context */
	u32 pad;
};

#define MAX_WAKERS 16

/* Who ended a wait, who ended a wait of that thread meanwhile, and so on. Sent once, like stacks. */
struct chain_record {
	u32 type;
	u32 count;
	u64 id;
	struct waker of[MAX_WAKERS];
};

/* A part of the waits that a chain ended: that in which its last thread had not been woken, or had no need to be. */
struct wakeup_sum {
	u64 time;
	u64 count; /* of waits, with the longest chain of each */
	u64 min;   /* … whole; all ones without any */
	u64 max;
};

/* A trace that is cut into intervals: the last boundary that is done with, and the next one. User space announces a
 * boundary before its time. The first event of a thread after it sends the thread's account up to the boundary, and
 * starts a new one; the iterator reports the threads that had no event. The lowest bit of a boundary chooses the table
 * for the sums of the interval that it begins. */
struct cuts {
	u64 last; /* 0: none yet */
	u64 next; /* 0, or the last one: none is announced */
};

/* The state of a thread: at its exit, at the end of an interval, or from the iterator when the trace ends. */
struct thread_record {
	u32 type;
	u32 cpu;
	u64 end;
	char comm[COMM_LEN];
	struct thread thread;
};

/* A scheduler event for a timeline: one cache line. `left` and `wait` are of enum wait_state. `left` is WAIT_NEW if the
 * thread that leaves can run again already, and can also be LEFT_FOR_EVER. */
struct sched_event {
	u64 time;
	u64 out;   /* SWITCHED: start of the wait of `tid` that ends now; 0: none. WOKEN: core of `other`. MADE: when */
	u64 woken; /* … its wake-up. Others: the core where `tid` is going to run */
	u64 ustack; /* … its stacks. SAMPLED: what it runs */
	u64 kstack;
	u32 tid;   /* thread that gets the core, is woken, is new, or runs */
	u32 other; /* thread that leaves it, wakes or creates */
	u32 what;  /* SWITCHED, SAMPLED: struct origin's life. MADE: the process */
	u32 lost;  /* events of this core lost just before this one */
	s16 prio;  /* of `tid` */
	u16 cpu;
	u8 left;
	u8 wait;
	u8 kind;  /* enum sched_event_kind */
	u8 first; /* the wait began before the thread was seen. WOKEN: by an interrupt */
};

enum sched_event_kind {
	SWITCHED,
	WOKEN,
	MADE, /* and woken for the first time */
	SAMPLED,
};

#define LEFT_FOR_EVER (RUNNING + 1)

/* The events of a core: a ring, written by the core alone with interrupts off, and read by user space. */
struct event_ring {
	u64 head;    /* events written so far */
	u64 tail;    /* … and read */
	u64 lost;    /* … and lost, for want of room */
	u64 pending; /* … lost since the last one that was written */
	u64 first;   /* index of its first slot in the array of all cores */
	u64 slots;   /* a power of two; 0: the core has none */
	u64 pad[2];
};

/* A process whose address space is locked, or waited for: mirrored by tracers/holder/locked.py. */
struct locked_record {
	u64 mm;	   /* tells address spaces apart */
	u64 count; /* of its lock */
	u32 tgid;
	u32 writes; /* changes with each writer that gets the lock, where the kernel counts them */
};

/* One per thread that the seeding iterator added to the scope. */
struct seed_record {
	u32 tid;
	u32 tgid;
};

/* A waiting thread whose user stack is incomplete, with the registers where a walk begins. */
struct sleeper_record {
	u32 tid;
	u32 tgid;
	u64 out; /* when it was switched out */
	u64 ip;
	u64 sp;
	u64 bp;
	u64 fs;
	u32 narrow; /* 32-bit code */
	u32 pad;
};

enum counter {
	LOST_STACKS,	  /* ring buffer full: the stack's waits are counted, its frames are not known */
	LOST_WAITS,	  /* no room for a new key: intervals not attributed to a stack */
	LOST_THREADS,	  /* no memory for a thread's state: not traced */
	LOST_RECORDS,	  /* ring buffer full: exec or exit not reported */
	STACK_TABLE_FULL, /* a stack was sent again, because the table of known ones is full */
	STACKS_FAILED,	  /* no part of a user stack could be read */
	MISSED_INS, /* switches that the tracepoint did not report: their time follows from the thread's CPU time */
	MISSED_OUTS,
	MISSED_WAITS,	/* neither was reported: inferred from the kernel's count of switches */
	MEMO_HITS,	/* kernel stacks recognised without unwinding, see kernel_stack.bpf.h */
	MEMO_CHECKS,	/* recognised, but unwound to check */
	MEMO_WRONG,	/* … with a different result */
	USER_MEMO_HITS, /* the same for user stacks: see user_stack.bpf.h */
	USER_MEMO_CHECKS,
	USER_MEMO_WRONG,
	LATE_STACKS, /* user stacks walked again */
	NEW_THREADS, /* added to the scope */
	NEW_WAITS,   /* entries in the tables of waits */
	NEW_SAMPLES, /* … and of samples */
	NEW_CALLS,   /* … and of calls of functions */
	NEW_STACKS,
	NEW_IOCTLS,   /* … of ioctls, in entries of the largest table */
	LOST_WAKEUPS, /* no room for a new key */
	NEW_WAKEUPS,
	NEW_LOCKS,	      /* … of waits for locks */
	NEW_EVENTS,	      /* … of events that the user named */
	PYTHON_STACKS_CUT,    /* with more functions than MAX_PYTHON */
	PYTHON_STACKS_FAILED, /* not, or only partly, readable */
	NEW_GIL_WAITS,	      /* … of waits for Python's interpreter lock */
	LOST_OBJECTS,	      /* files and sockets without room in the table of known ones */
	LOST_MAKERS,	      /* threads whose creation has no stack: another program used the memory for it */
	LOST_REFUSALS,	      /* requests for locks on files without room in their table */
	LOST_RETRANSMISSIONS, /* TCP segments sent again, of connections without room in their table */
	COUNTERS,
};

#endif
