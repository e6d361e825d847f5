/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who waits for a lock at the same time: how long waits take with others in the queue, and how long without.
 *
 * A wait is alone if nobody waited when it began and nobody came before it ended. Numbers are read before they are
 * changed: of two that come at the same moment neither is alone. What was forgotten meanwhile is not judged. */
#ifndef STALLSCOPE_LOCK_CROWD_BPF_H
#define STALLSCOPE_LOCK_CROWD_BPF_H

#include "maps.bpf.h"

struct lock_id {
	u64 address; /* of several processes: a number, which user space has given */
	u32 tgid;    /* 0: the kernel's, or of several processes */
	u32 kind;
};

/* Futexes that processes may share, and the numbers that user space gives them: by the file that is mapped there. Those
 * that were not waited for lately are forgotten, and told again. */
struct shared_word {
	u64 address;
	u32 tgid;
	u32 pad;
};

struct shared_word_table {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct shared_word);
	__type(value, u64);
};
struct shared_word_table lock_shared SEC(".maps");

/* A futex in shared memory has a number as soon as user space has looked it up. */
static __always_inline void number_shared(struct lock_id *lock)
{
	struct shared_word shared = { lock->address, lock->tgid };
	u64 *number = bpf_map_lookup_elem(&lock_shared, &shared);

	if (number && *number) {
		lock->address = *number;
		lock->tgid = 0;
	}
}

/* Part of a wait that has not ended. */
struct lock_place {
	struct lock_id lock;
	u32 number; /* how many have come, with this one; 0: it is in no queue */
	u32 others; /* how many waited when it came */
};

struct lock_crowd {
	u32 inside;
	u32 come;
	u64 since; /* when the first one of those that wait came */
};

/* Locks that were not waited for lately are forgotten: so none has to be removed. */
struct lock_crowd_table {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct lock_id);
	__type(value, struct lock_crowd);
};
struct lock_crowd_table lock_crowds SEC(".maps");

enum lock_company {
	COMPANY_UNKNOWN,
	COMPANY_NONE,
	COMPANY_OTHERS,
};
#define COMPANY_BITS 2

/* The wait at this place ends, or is not counted. Returns what it had for company, and above COMPANY_BITS, if nobody
 * waits any more, for how long somebody has. */
__weak u64 leave_crowd(struct lock_place *place, u64 now)
{
	struct lock_crowd *crowd;
	struct lock_id lock;
	u32 inside;
	u64 busy = 0, company;

	if (!place || !place->number)
		return COMPANY_UNKNOWN;
	lock = place->lock; /* Linux 6.1 takes no key from an argument */
	crowd = bpf_map_lookup_elem(&lock_crowds, &lock);
	company = COMPANY_UNKNOWN;
	if (crowd && crowd->come >= place->number && crowd->inside) {
		company = place->others || crowd->come != place->number ? COMPANY_OTHERS : COMPANY_NONE;
		inside = __sync_fetch_and_add(&crowd->inside, -1);
		if (inside == 1 && now > crowd->since)
			busy = now - crowd->since;
	}
	place->number = 0;
	return busy << COMPANY_BITS | company;
}

/* A wait for `place->lock` begins. */
__weak int join_crowd(struct lock_place *place, u64 now)
{
	struct lock_crowd *crowd, none = {};
	struct lock_id lock;

	if (!place)
		return 0;
	lock = place->lock;
	crowd = bpf_map_lookup_elem(&lock_crowds, &lock);
	if (!crowd) {
		bpf_map_update_elem(&lock_crowds, &lock, &none, BPF_NOEXIST);
		crowd = bpf_map_lookup_elem(&lock_crowds, &lock);
	}
	if (!crowd)
		return 0;
	place->others = __sync_fetch_and_add(&crowd->inside, 1);
	if (!place->others)
		crowd->since = now;
	place->number = __sync_fetch_and_add(&crowd->come, 1) + 1;
	return 0;
}

#endif
