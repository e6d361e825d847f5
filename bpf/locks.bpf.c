/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Waits for locks: which lock, who waits how long and where, who has it meanwhile, and whether somebody always waits.
 *
 * A lock of a program is the word of a futex. The wait is seen where the thread is switched out in the call, while its
 * memory can be read: what the C library keeps beside the word tells the owner. What user space cannot rely on from here
 * (whether the id is that of a thread of these processes, whether the word is part of a mutex at all) it checks itself.
 *
 * A lock of the kernel is told by the tracepoints contention_begin and contention_end. Those of spinlocks fire with any
 * lock of the kernel held, even those of BPF's own maps: for these, nothing is used that takes a lock. */
#include "futex.bpf.h"
#include "gil.bpf.h"
#include "kernel_stack.bpf.h"
#include "lock_crowd.bpf.h"
#include "measures.bpf.h"
#include "thread.bpf.h"
#include "user_stack.bpf.h"
#include "wakeup.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* include/uapi/linux/futex.h */
#define FUTEX_WAIT 0
#define FUTEX_LOCK_PI 6
#define FUTEX_WAIT_BITSET 9
#define FUTEX_WAIT_REQUEUE_PI 11
#define FUTEX_LOCK_PI2 13
#define FUTEX_PRIVATE_FLAG 128
#define FUTEX_CMD_MASK 127
#define FUTEX_TID_MASK 0x3fffffff
#define FUTEX2_PRIVATE 128

/* glibc's struct __pthread_mutex_s: words before and in `__kind` (sysdeps/x86/nptl/bits/struct_mutex.h), its kinds
 * (nptl/pthreadP.h), and struct __pthread_rwlock_arch_t, whose `__cur_writer` is the fourth word after one of its two
 * futexes and the third after the other. */
#define MUTEX_OWNER 2
#define MUTEX_USERS 3
#define MUTEX_KIND 4
#define KIND_ROBUST 16
#define KIND_SHARED 128
#define KIND_ANY 0x3ff
#define RWLOCK_WAITED 3
#define WORDS 8

/* include/trace/events/lock.h */
#define LCB_F_SPIN 1
#define LCB_F_READ 2
#define LCB_F_RT 8
#define LCB_F_PERCPU 16
#define LCB_F_MUTEX 32

/* What kind of lock it is: above the state of an origin. Mirrored in tracers/engines/ebpf/measures/lock_records.py. */
enum lock_kind {
	LOCK_PRIVATE = 1, /* of one process */
	LOCK_PI = 2,
	LOCK_SEVERAL = 4, /* the first one of several */
	LOCK_MUTEX = 8,	  /* looks like a mutex of glibc */
	LOCK_GIL = 16,	  /* Python's interpreter lock */
	LOCK_KERNEL = 128,
};
#define KIND_SHIFT 8
#define FLAGS_SHIFT 8 /* of a kernel's lock, in the kind */

#define OWNER_FLAGS 7ULL /* low bits of the owner in a mutex, a rwsem or an rt_mutex */
#define RWSEM_READERS 1ULL

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct mutex {
	struct atomic_word owner;
};

struct rt_mutex_base {
	struct task_struct *owner;
};

struct signal_struct {
	struct mutex cred_guard_mutex;
	struct rw_semaphore exec_update_lock;
};

struct task_struct___owns {
	struct mm_struct *mm;
	struct signal_struct *signal;
};

struct kmem_cache_order_objects {
	u32 x;
};

struct kmem_cache {
	u32 size;
	u32 object_size;
	u32 red_left_pad;
	struct kmem_cache_order_objects oo;
	struct kmem_cache_order_objects min;
	int refcount;
	const char *name;
};

#pragma clang attribute pop

/* A wait that has not ended. */
struct lock_wait {
	u64 address;  /* 0: none */
	u64 switches; /* see struct thread: which switch began it */
	u32 kind;
	u32 owner;
	u32 second; /* of a futex: the writer, if it is that of a rwlock. Of the kernel's: the owner's process */
	u32 flags;
	u64 lock; /* the kernel's; 0: none. A thread may wait for it only while it waits for no futex */
	u64 began;
	/* Its last wait for a futex. */
	u64 last;
	u64 last_end;
	struct waker root; /* who let it wait for most of it */
	struct lock_place place;
};

struct lock_wait_table {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct lock_wait);
};
struct lock_wait_table lock_waiting SEC(".maps");

struct lock_key {
	struct origin origin; /* its state also has the kind */
	u64 address;
};

struct lock_sum {
	u64 time;
	u64 count;
	u64 max;
};

struct holder_key {
	struct lock_id lock;
	u32 owner;
	u32 second;
	struct waker waker; /* who ended the wait */
};

DEFINE_SUM_TABLES(lock_sums, sizeof(struct lock_key), sizeof(struct lock_sum));
DEFINE_SUM_TABLES(lock_holders, sizeof(struct holder_key), sizeof(struct lock_sum));

/* The longest time in which there was always somebody who waited. Waits are told when they end: one that began before the
 * present run ended continues it. Several cores can write one: it may be told too short. */
struct lock_queue {
	u64 begin;
	u64 end;
	u64 waits;
	u64 longest;
	u64 longest_waits;
	/* Waits of which it is known whether others waited meanwhile, and those of them during which nobody did. */
	u64 judged;
	u64 judged_time;
	u64 alone;
	u64 alone_time;
	u64 busy; /* time in which somebody waited */
};

struct lock_queue_table {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct lock_id);
	__type(value, struct lock_queue);
};
struct lock_queue_table lock_queues SEC(".maps");

/* What a lock of the kernel in allocated memory is part of. Mirrored in tracers/engines/ebpf/measures/lock_objects.py,
 * with the enum. */
enum lock_part {
	PART_UNKNOWN,
	PART_MMAP_LOCK,	       /* of struct mm_struct */
	PART_CRED_GUARD_MUTEX, /* of struct signal_struct */
	PART_EXEC_UPDATE_LOCK, /* the same */
};

#define CACHE_NAME 32

struct lock_object {
	u64 cache; /* from which it was allocated; 0: not known, or from none */
	u32 size;
	u32 object_size;
	u32 red_left_pad;
	u32 orders; /* of slabs, see kmem_cache_order_objects */
	u32 least_orders;
	u32 uses; /* more than 1: several caches that were merged */
	u32 part;
	u32 tgid;    /* of which process it is that part */
	u32 changed; /* the memory was given to another cache, or to another process */
	u32 pad;
	char name[CACHE_NAME];
};

struct lock_object_table {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, struct lock_object);
};
struct lock_object_table lock_objects SEC(".maps");

/* Too large for the BPF stack. A program does not interrupt itself. */
struct lock_object_scratch {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct lock_object);
};
struct lock_object_scratch lock_object_made SEC(".maps");

struct lock_record {
	u32 type;
	u32 tgid;
	u64 address;
};

enum lock_loss {
	LOST_LOCK_WAITS,   /* no room: not counted at all */
	LOST_LOCK_SUMS,	   /* no room for where and who waits */
	LOST_LOCK_HOLDERS, /* no room for who has it */
	LOST_LOCK_QUEUES,  /* no room to tell how long somebody always waited */
	LOST_LOCK_NAMES,   /* no room to tell that processes share it */
	LOST_LOCK_SPINS,   /* of spinlocks: no room */
	LOST_LOCK_OBJECTS, /* no room to tell what holds it */
	LOCK_LOSSES,
};

struct lock_loss_array {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, LOCK_LOSSES);
	__type(key, u32);
	__type(value, u64);
};
struct lock_loss_array lock_losses SEC(".maps");

static __always_inline void lose_lock(enum lock_loss which)
{
	u32 key = which;
	u64 *value = bpf_map_lookup_elem(&lock_losses, &key);

	if (value)
		(*value)++;
}

/* The thread's entry; NULL where there is no room for one. */
static __always_inline struct lock_wait *lock_wait_of(u32 tid, bool create)
{
	struct lock_wait *wait = bpf_map_lookup_elem(&lock_waiting, &tid), none = {};

	if (wait || !create)
		return wait;
	if (bpf_map_update_elem(&lock_waiting, &tid, &none, BPF_NOEXIST))
		lose_lock(LOST_LOCK_WAITS);
	return bpf_map_lookup_elem(&lock_waiting, &tid);
}

static __always_inline bool reads_wait(const struct futex_call *call, u64 *address, u32 *kind, u32 *expected)
{
	u32 command = call->second & FUTEX_CMD_MASK;
	struct {
		u64 value;
		u64 address;
		u32 flags;
		u32 pad;
	} vector = {};

	if (call->number == NR_FUTEX_WAITV) {
		if (bpf_probe_read_user(&vector, sizeof(vector), (void *)call->first))
			return false;
		*address = vector.address;
		*kind = (vector.flags & FUTEX2_PRIVATE ? LOCK_PRIVATE : 0) | (call->second > 1 ? LOCK_SEVERAL : 0);
		*expected = vector.value;
		return true;
	}
	*address = call->first;
	if (call->number == NR_FUTEX_WAIT) { /* its flags are the fourth argument: private is what they are as a rule */
		*kind = LOCK_PRIVATE;
		*expected = call->second;
		return true;
	}
	*kind = call->second & FUTEX_PRIVATE_FLAG ? LOCK_PRIVATE : 0;
	*expected = call->third;
	if (command == FUTEX_LOCK_PI || command == FUTEX_LOCK_PI2)
		*kind |= LOCK_PI;
	return command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET || command == FUTEX_WAIT_REQUEUE_PI ||
	       *kind & LOCK_PI;
}

/* Reads from what is at the futex who may have the lock. */
static __always_inline void read_owner(struct lock_wait *wait, u32 expected)
{
	u32 word[WORDS] = {};
	u32 kind;

	if (bpf_probe_read_user(word, sizeof(word), (void *)wait->address)) {
		if (wait->kind & LOCK_PI && !bpf_probe_read_user(word, sizeof(u32), (void *)wait->address))
			wait->owner = word[0] & FUTEX_TID_MASK;
		return;
	}
	kind = word[MUTEX_KIND];
	if (wait->kind & LOCK_PI) {
		wait->owner = word[0] & FUTEX_TID_MASK;
	} else if (word[MUTEX_OWNER] && word[MUTEX_USERS] && !(kind & ~KIND_ANY) &&
		   !(kind & KIND_SHARED) == !!(wait->kind & LOCK_PRIVATE) &&
		   (kind & KIND_ROBUST ? (word[0] & FUTEX_TID_MASK) == word[MUTEX_OWNER] : expected == 2)) {
		wait->kind |= LOCK_MUTEX;
		wait->owner = word[MUTEX_OWNER];
	} else if (expected == RWLOCK_WAITED) {
		wait->second = word[3] ? word[3] : word[4];
	}
}

static __always_inline void comes(struct lock_wait *wait, u64 address, u32 tgid, u32 kind, u64 now)
{
	leave_crowd(&wait->place, now);
	wait->place.lock.address = address;
	wait->place.lock.tgid = tgid;
	wait->place.lock.kind = kind & LOCK_KERNEL;
	if (!(kind & (LOCK_PRIVATE | LOCK_KERNEL)))
		number_shared(&wait->place.lock);
	join_crowd(&wait->place, now);
}

int locks_waits(struct thread *t, const struct futex_call *call)
{
	struct shared_word shared = {};
	struct lock_wait *wait;
	struct lock_record *r;
	u32 kind, expected;
	u64 address, none = 0;

	if (!t || !call)
		return 0;
	if (!reads_wait(call, &address, &kind, &expected))
		return 0;
	wait = lock_wait_of(t->key.tid, true);
	if (!wait)
		return 0;
	wait->address = address;
	wait->switches = t->kernel_switches;
	wait->kind = kind;
	wait->owner = 0;
	wait->second = 0;
	wait->lock = 0;
	if (reads_gil(t->key.tgid, address, &wait->owner))
		wait->kind |= LOCK_GIL;
	else
		read_owner(wait, expected);
	comes(wait, address, t->key.tgid, kind, t->out);
	if (kind & LOCK_PRIVATE)
		return 0;
	shared.address = address;
	shared.tgid = t->key.tgid;
	if (bpf_map_lookup_elem(&lock_shared, &shared))
		return 0;
	if (bpf_map_update_elem(&lock_shared, &shared, &none, BPF_NOEXIST)) {
		lose_lock(LOST_LOCK_NAMES);
		return 0;
	}
	r = bpf_ringbuf_reserve(&records, sizeof(*r), 0);
	if (!r) { /* told when it is waited for again */
		bpf_map_delete_elem(&lock_shared, &shared);
		return 0;
	}
	r->type = RECORD_LOCK;
	r->tgid = t->key.tgid;
	r->address = address;
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return 0;
}

static __always_inline void add_to(struct lock_sum *sum, u64 time, u64 waits)
{
	__sync_fetch_and_add(&sum->time, time);
	__sync_fetch_and_add(&sum->count, waits);
	if (time > sum->max)
		sum->max = time;
}

/* Tables that are nearly full are taken out. That of holders has this many times fewer entries. Mirrored in
 * tracers/engines/ebpf/measures/lock_records.py. */
#define SMALL_TABLE 4

static __always_inline void count_new_locks(u32 entries)
{
	u32 key = NEW_LOCKS;
	u64 *value = bpf_map_lookup_elem(&counters, &key);

	if (value)
		*value += entries;
}

/* Adds a wait to a table; returns whether there was room. */
static __always_inline bool add_lock_sum(void *tables, const void *key, u64 time, u64 waits, u32 slot, u32 entries)
{
	void *table = bpf_map_lookup_elem(tables, &slot);
	struct lock_sum *sum, none = {};

	if (!table)
		return false;
	sum = bpf_map_lookup_elem(table, key);
	if (!sum) {
		if (!bpf_map_update_elem(table, key, &none, BPF_NOEXIST))
			count_new_locks(entries);
		sum = bpf_map_lookup_elem(table, key);
	}
	if (sum)
		add_to(sum, time, waits);
	return sum;
}

/* `left`: what leave_crowd() has returned; `time`: of the wait, without what was counted in the interval before. */
__weak int add_to_queue(const struct lock_id *lock, u64 begin, u64 end, u64 time, u64 left)
{
	struct lock_queue *queue, none = {};
	u32 company = left & ((1 << COMPANY_BITS) - 1);
	struct lock_id id;

	if (!lock)
		return 0;
	id = *lock;
	id.kind &= LOCK_KERNEL;
	if (!(lock->kind & (LOCK_PRIVATE | LOCK_KERNEL)))
		number_shared(&id);
	queue = bpf_map_lookup_elem(&lock_queues, &id);
	if (!queue) {
		if (!bpf_map_update_elem(&lock_queues, &id, &none, BPF_NOEXIST))
			count_new_locks(SMALL_TABLE);
		queue = bpf_map_lookup_elem(&lock_queues, &id);
	}
	if (!queue) {
		lose_lock(LOST_LOCK_QUEUES);
		return 0;
	}
	if (!queue->waits || begin > queue->end) {
		queue->begin = begin;
		queue->waits = 0;
	} else if (begin < queue->begin) {
		queue->begin = begin;
	}
	queue->waits++;
	if (end > queue->end)
		queue->end = end;
	if (queue->end - queue->begin > queue->longest) {
		queue->longest = queue->end - queue->begin;
		queue->longest_waits = queue->waits;
	}
	if (company == COMPANY_UNKNOWN)
		return 0;
	__sync_fetch_and_add(&queue->judged, 1);
	__sync_fetch_and_add(&queue->judged_time, time);
	if (company == COMPANY_NONE) {
		__sync_fetch_and_add(&queue->alone, 1);
		__sync_fetch_and_add(&queue->alone_time, time);
	}
	__sync_fetch_and_add(&queue->busy, left >> COMPANY_BITS);
	return 0;
}

/* What is counted: too large for the BPF stack. One for each program that counts, as one can interrupt the other. */
enum count_slot {
	COUNT_SWITCHES, /* with interrupts off */
	COUNT_ENDS,	/* at contention_end */
	COUNT_SLOTS,
};

struct lock_count {
	struct lock_key key;
	struct holder_key holder;
};

struct lock_count_array {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COUNT_SLOTS);
	__type(key, u32);
	__type(value, struct lock_count);
};
struct lock_count_array lock_counts SEC(".maps");

static __always_inline struct lock_count *new_count(enum count_slot which)
{
	u32 slot = which;
	struct lock_count *made = bpf_map_lookup_elem(&lock_counts, &slot);

	if (made)
		__builtin_memset(made, 0, sizeof(*made));
	return made;
}

/* Counts a wait. `cut`: beginning of its interval. */
static __always_inline void count_lock_wait(const struct lock_count *of, u64 time, u64 cut)
{
	if (!add_lock_sum(&lock_sums, &of->key, time, 1, cut & (SUM_TABLES - 1), 1))
		lose_lock(LOST_LOCK_SUMS);
}

/* Counts a wait, or a part of one (with `waits` 0), for the one that had the lock. */
static __always_inline void count_holder(const struct lock_count *of, u64 time, u64 waits, u64 cut)
{
	if (!add_lock_sum(&lock_holders, &of->holder, time, waits, cut & (SUM_TABLES - 1), SMALL_TABLE))
		lose_lock(LOST_LOCK_HOLDERS);
}

static __always_inline bool same_lock(const struct lock_id *lock, u64 address, u32 tgid)
{
	struct shared_word one = { lock->address, lock->tgid }, other = { address, tgid };
	u64 *number, *others;

	if (lock->address == address && lock->tgid == tgid)
		return true;
	if (lock->kind & LOCK_PRIVATE)
		return false;
	number = bpf_map_lookup_elem(&lock_shared, &one);
	others = bpf_map_lookup_elem(&lock_shared, &other);
	return number && others && *number && *number == *others;
}

/* Counts who had the lock. If the one that ended the wait had waited for the same lock meanwhile, it has had it only
 * since then; before, it was the one that had let it wait. */
static __always_inline void passed_on(struct lock_wait *wait, struct lock_count *of, u64 begin, u64 end, u64 cut)
{
	u32 tid = of->holder.waker.tid;
	struct lock_wait *before = tid ? bpf_map_lookup_elem(&lock_waiting, &tid) : NULL;
	u64 since = before ? before->last_end : 0, early;

	if (!before || since <= begin || since > end || !before->root.tid ||
	    !same_lock(&of->holder.lock, before->last, of->holder.waker.tgid)) {
		count_holder(of, end - begin, 1, cut);
		return;
	}
	early = since - begin;
	count_holder(of, end - since, early <= end - since, cut);
	of->holder.waker = before->root;
	if (early > end - since)
		wait->root = of->holder.waker;
	count_holder(of, early, early > end - since, cut);
}

/* The interval that began at t->out ends now; see wakeup_ended(). */
int locks_waited(struct thread *t, struct wakeups *w, u64 now)
{
	struct lock_wait *wait;
	struct lock_count *of;
	u64 end, left;

	if (!t)
		return 0;
	wait = lock_wait_of(t->key.tid, false);
	if (!wait || !wait->address)
		return 0;
	of = new_count(COUNT_SWITCHES);
	end = t->out + blocked_part(t, now);
	left = leave_crowd(&wait->place, end);
	if (!of || wait->switches != t->kernel_switches || !wait_counts(t, now) || end <= t->out) {
		wait->address = 0;
		return 0;
	}
	of->key.origin = t->key;
	of->key.origin.object = 0;
	if (t->late_out == t->out)
		of->key.origin.ustack = t->late_ustack;
	of->key.origin.state |= wait->kind << KIND_SHIFT;
	of->key.address = wait->address;
	of->holder.lock.address = wait->address;
	of->holder.lock.tgid = t->key.tgid;
	of->holder.lock.kind = wait->kind;
	of->holder.owner = wait->owner;
	of->holder.second = wait->second;
	if (w && w->since == end)
		of->holder.waker = w->of[w->current & 1].of[0].waker;
	wait->last = wait->address;
	wait->last_end = end;
	wait->root = of->holder.waker;
	wait->address = 0;
	count_lock_wait(of, end - t->out, t->cut);
	add_to_queue(&of->holder.lock, t->out, end, end - t->out, left);
	passed_on(wait, of, t->out, end, t->cut);
	return 0;
}

int locks_gone(struct thread *t)
{
	struct lock_wait *wait;
	u32 tid;

	if (!t)
		return 0;
	tid = t->key.tid;
	wait = lock_wait_of(tid, false);
	if (!wait)
		return 0;
	leave_crowd(&wait->place, bpf_ktime_get_ns());
	bpf_map_delete_elem(&lock_waiting, &tid);
	return 0;
}

/* The thread that has a lock of the kernel, if the lock says so. */
static __always_inline struct task_struct *kernel_owner(void *lock, u32 flags)
{
	u64 owner = 0;

	if (flags & LCB_F_MUTEX) {
		struct mutex *mutex = lock;

		if (bpf_core_field_exists(mutex->owner))
			owner = BPF_CORE_READ(mutex, owner.counter);
	} else if (flags & LCB_F_RT) {
		struct rt_mutex_base *base = lock;

		if (bpf_core_field_exists(base->owner))
			owner = (u64)BPF_CORE_READ(base, owner);
	} else if (!(flags & LCB_F_PERCPU)) {
		struct rw_semaphore *sem = lock;

		if (bpf_core_field_exists(sem->owner))
			owner = BPF_CORE_READ(sem, owner.counter);
		if (owner & RWSEM_READERS) /* one of those that had it, perhaps for long not */
			owner = 0;
	}
	return (struct task_struct *)(owner & ~OWNER_FLAGS);
}

/* Spinlocks: nested where an interrupt comes while a core waits for one. */
#define SPINS 4
#define SPIN_FRAMES 12
#define SPIN_SLOTS 256 /* a power of two; mirrored in tracers/engines/ebpf/measures/lock_records.py */
#define SPIN_TRIES 4

struct spin {
	u64 lock; /* 0: none */
	u64 began;
	u64 flags;
};

struct spin_sum {
	u64 lock; /* 0: free */
	u64 hash;
	u64 time;
	u64 count;
	u64 max;
	u32 tid;
	u32 tgid;
	u32 life;
	u32 flags;
	u64 frames[SPIN_FRAMES];
};

struct spin_scratch {
	struct spin of[SPINS];
	u64 frames[SPIN_FRAMES];
};

struct spin_scratch_array {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct spin_scratch);
};
struct spin_scratch_array lock_spinning SEC(".maps");

/* A table per core and interval, without any lock. */
struct spin_table {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SPIN_SLOTS *SUM_TABLES);
	__type(key, u32);
	__type(value, struct spin_sum);
};
struct spin_table lock_spins SEC(".maps");

static __always_inline struct spin_scratch *spin_scratch(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&lock_spinning, &zero);
}

static __always_inline void spin_begins(u64 lock, u32 flags)
{
	struct spin_scratch *scratch = spin_scratch();
	u64 now = bpf_ktime_get_ns(), oldest = now;
	u32 i, place = 0;

	if (!scratch)
		return;
	for (i = 0; i < SPINS; i++) {
		if (!scratch->of[i].lock) {
			place = i;
			break;
		}
		if (scratch->of[i].began < oldest) {
			oldest = scratch->of[i].began;
			place = i;
		}
	}
	/* None is nested so deeply: its end was not seen. */
	place &= SPINS - 1;
	if (scratch->of[place].lock)
		lose_lock(LOST_LOCK_SPINS);
	scratch->of[place].began = now;
	scratch->of[place].flags = flags;
	scratch->of[place].lock = lock;
}

/* When the core began to wait for the lock; 0: not known. */
static __always_inline u64 spin_ends(struct spin_scratch *scratch, u64 lock, u32 *flags)
{
	u32 i;

	for (i = 0; i < SPINS; i++) {
		if (scratch->of[i].lock == lock) {
			scratch->of[i].lock = 0;
			*flags = scratch->of[i].flags;
			return scratch->of[i].began;
		}
	}
	return 0;
}

__weak int add_spin(struct spin_scratch *scratch, const struct origin *who, u64 lock, u64 time, u32 slot)
{
	struct spin_sum *sum;
	u32 i, j, place;
	u64 hash;

	if (!scratch || !who)
		return 0;
	hash = lock ^ who->tid * 0x9e3779b97f4a7c15ULL;
	for (i = 0; i < SPIN_FRAMES; i++)
		hash = (hash ^ scratch->frames[i]) * 0xff51afd7ed558ccdULL;
	hash ^= hash >> 32;
	for (i = 0; i < SPIN_TRIES; i++) {
		place = (slot & (SUM_TABLES - 1)) * SPIN_SLOTS + ((hash + i) & (SPIN_SLOTS - 1));
		sum = bpf_map_lookup_elem(&lock_spins, &place);
		if (!sum)
			return 0;
		if (sum->lock && (sum->lock != lock || sum->hash != hash))
			continue;
		if (!sum->lock) {
			sum->hash = hash;
			sum->time = 0;
			sum->count = 0;
			sum->max = 0;
			sum->tid = who->tid;
			sum->tgid = who->tgid;
			sum->life = who->life;
			sum->flags = who->state;
			for (j = 0; j < SPIN_FRAMES; j++)
				sum->frames[j] = scratch->frames[j];
			barrier();
			sum->lock = lock;
		}
		sum->time += time;
		sum->count++;
		if (time > sum->max)
			sum->max = time;
		return 0;
	}
	lose_lock(LOST_LOCK_SPINS);
	return 0;
}

/* bpf_get_kmem_cache(), a function of the kernel (a992d7a39789, 6.13). No helper has this number: user space puts the
 * call of the function in its place, where the kernel has it. An extern declaration would make libbpf ask for the
 * kernel's own BTF, also on kernels that have none. Mirrored in tracers/engines/ebpf/measures/lock_objects.py. */
static struct kmem_cache *(*get_kmem_cache)(u64 address) = (void *)900001;

/* Which lock of the present thread's own it is. */
static __always_inline u32 own_part(u64 lock, struct task_struct *task)
{
	struct task_struct___owns *owns = (void *)task;
	struct signal_struct *signal;
	struct mm_struct *mm = BPF_CORE_READ(owns, mm);

	if (mm && lock == (u64)__builtin_preserve_access_index(&mm->mmap_lock))
		return PART_MMAP_LOCK;
	signal = BPF_CORE_READ(owns, signal);
	if (!signal)
		return PART_UNKNOWN;
	if (bpf_core_field_exists(signal->cred_guard_mutex) &&
	    lock == (u64)__builtin_preserve_access_index(&signal->cred_guard_mutex))
		return PART_CRED_GUARD_MUTEX;
	if (bpf_core_field_exists(signal->exec_update_lock) &&
	    lock == (u64)__builtin_preserve_access_index(&signal->exec_update_lock))
		return PART_EXEC_UPDATE_LOCK;
	return PART_UNKNOWN;
}

static __always_inline void read_cache(struct lock_object *made, struct kmem_cache *cache)
{
	const char *name = BPF_CORE_READ(cache, name);

	made->size = BPF_CORE_READ(cache, size);
	made->object_size = BPF_CORE_READ(cache, object_size);
	if (bpf_core_field_exists(cache->red_left_pad))
		made->red_left_pad = BPF_CORE_READ(cache, red_left_pad);
	made->orders = BPF_CORE_READ(cache, oo.x);
	made->least_orders = BPF_CORE_READ(cache, min.x);
	made->uses = BPF_CORE_READ(cache, refcount);
	bpf_probe_read_kernel_str(made->name, sizeof(made->name), name);
}

/* Keeps what holds the lock. The address may be another lock's later: then it is told that it has changed. */
static __always_inline void keep_object(u64 lock, struct task_struct *task, u32 tgid, bool asks)
{
	struct kmem_cache *cache = asks ? get_kmem_cache(lock) : NULL;
	u32 part = own_part(lock, task), zero = 0;
	struct lock_object *object, *made;

	object = bpf_map_lookup_elem(&lock_objects, &lock);
	if (object) {
		if (object->cache != (u64)cache || (part && object->part && object->part != part))
			object->changed = 1;
		if (part && object->part && object->tgid != tgid)
			object->tgid = 0;
		if (part && !object->part) {
			object->tgid = tgid;
			object->part = part;
		}
		return;
	}
	made = bpf_map_lookup_elem(&lock_object_made, &zero);
	if (!made || (!cache && !part))
		return;
	__builtin_memset(made, 0, sizeof(*made));
	made->cache = (u64)cache;
	made->part = part;
	made->tgid = part ? tgid : 0;
	if (cache)
		read_cache(made, cache);
	if (bpf_map_update_elem(&lock_objects, &lock, made, BPF_ANY))
		lose_lock(LOST_LOCK_OBJECTS);
}

/* `asks`: the kernel, in which cache the lock is. */
static __always_inline int on_begin(u64 lock, u32 flags, bool trusted, bool asks)
{
	struct task_struct *current, *owner;
	struct lock_wait *wait;
	struct thread *t;

	if (!running())
		return 0;
	current = trusted ? bpf_get_current_task_btf() : (void *)bpf_get_current_task();
	t = find_thread(current, trusted);
	if (!t || is_shed(SHED_LOCKS))
		return 0;
	if (flags & LCB_F_SPIN && !(flags & LCB_F_MUTEX)) {
		spin_begins(lock, flags);
		return 0;
	}
	wait = lock_wait_of(t->key.tid, true);
	if (!wait)
		return 0;
	if (wait->lock == lock && wait->began) /* a mutex: first it spins, then it sleeps */
		return 0;
	wait->address = 0;
	wait->flags = flags & ~LCB_F_SPIN;
	wait->owner = 0;
	wait->second = 0;
	owner = kernel_owner((void *)lock, flags);
	if (owner) {
		wait->owner = BPF_CORE_READ(owner, pid);
		wait->second = BPF_CORE_READ(owner, tgid);
	}
	wait->began = bpf_ktime_get_ns();
	wait->lock = lock;
	comes(wait, lock, 0, LOCK_KERNEL, wait->began);
	keep_object(lock, current, t->key.tgid, asks);
	return 0;
}

/* What a thread has waited for a lock that may let it sleep. */
static __always_inline void end_of_wait(u64 *ctx, struct task_struct *current, bool trusted, struct thread *t,
					struct lock_wait *wait, u64 now)
{
	u64 begin = wait->began, cut = interval_at(now), since = begin < cut ? cut : begin;
	struct lock_count *of = new_count(COUNT_ENDS);
	struct stack_record *record;
	u32 slot = CONTEXT_LOCK;
	u64 left = leave_crowd(&wait->place, now);
	struct wakeups *w;
	u8 end;

	if (!of || now <= since)
		return;
	of->key.origin.tid = t->key.tid;
	of->key.origin.tgid = t->key.tgid;
	of->key.origin.life = t->key.life;
	of->holder.lock.address = wait->lock;
	of->holder.lock.kind = LOCK_KERNEL | wait->flags << FLAGS_SHIFT;
	of->key.origin.state = WAIT_UNINTERRUPTIBLE | of->holder.lock.kind << KIND_SHIFT;
	of->key.address = wait->lock;
	of->holder.owner = wait->owner;
	of->holder.second = wait->second;
	record = bpf_map_lookup_elem(&stack_scratch, &slot);
	if (record && user_stacks && !(TASK_FIELD(trusted, current, flags) & PF_KTHREAD))
		of->key.origin.ustack = user_stack(CONTEXT_LOCK, current, t->key.tgid, true, record, &end);
	if (record && kernel_stacks)
		of->key.origin.kstack = kernel_stack(ctx, record);
	w = wakeups_of(current, trusted, false);
	if (w && w->since > begin)
		of->holder.waker = w->of[w->current & 1].of[0].waker;
	count_lock_wait(of, now - since, cut);
	count_holder(of, now - since, 1, cut);
	of->holder.lock.kind = LOCK_KERNEL;
	add_to_queue(&of->holder.lock, begin, now, now - since, left);
}

static __always_inline int on_end(u64 *ctx, u64 lock, bool trusted)
{
	struct spin_scratch *scratch = spin_scratch();
	struct task_struct *current;
	struct lock_wait *wait;
	struct origin who;
	struct thread *t;
	u64 now, began;
	u32 flags = 0;

	if (!running() || !scratch)
		return 0;
	now = bpf_ktime_get_ns();
	current = trusted ? bpf_get_current_task_btf() : (void *)bpf_get_current_task();
	began = spin_ends(scratch, lock, &flags);
	t = find_thread(current, trusted);
	if (!t)
		return 0;
	if (began) {
		who = t->key;
		who.object = 0;
		who.state = flags;
		__builtin_memset(scratch->frames, 0, sizeof(scratch->frames));
		bpf_get_stack(ctx, scratch->frames, sizeof(scratch->frames), 0);
		add_spin(scratch, &who, lock, now - began, interval_at(now) & (SUM_TABLES - 1));
		return 0;
	}
	wait = lock_wait_of(t->key.tid, false);
	if (!wait || wait->lock != lock || now < wait->began)
		return 0;
	end_of_wait(ctx, current, trusted, t, wait, now);
	wait->lock = 0;
	return 0;
}

SEC("tp_btf/contention_begin")
int locks_begin(u64 *ctx)
{
	return on_begin(ctx[0], ctx[1], true, false);
}

SEC("tp_btf/contention_begin")
int locks_begin_asking(u64 *ctx)
{
	return on_begin(ctx[0], ctx[1], true, true);
}

SEC("tp_btf/contention_end")
int locks_end(u64 *ctx)
{
	return on_end(ctx, ctx[0], true);
}

SEC("raw_tp/contention_begin")
int locks_begin_raw(u64 *ctx)
{
	return on_begin(ctx[0], ctx[1], false, false);
}

SEC("raw_tp/contention_begin")
int locks_begin_asking_raw(u64 *ctx)
{
	return on_begin(ctx[0], ctx[1], false, true);
}

SEC("raw_tp/contention_end")
int locks_end_raw(u64 *ctx)
{
	return on_end(ctx, ctx[0], false);
}
