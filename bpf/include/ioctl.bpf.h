/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The ioctl that a thread is in. */
#ifndef STALLSCOPE_IOCTL_BPF_H
#define STALLSCOPE_IOCTL_BPF_H

#include "maps.bpf.h"

/* The numbers of targets are above the states of an origin. */
#define NUMBER_SHIFT 8

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

/* A thread's present call, or its last one. The state of its origin also has the number of its target. */
struct ioctl_call {
	u64 began;   /* 0: it has returned */
	u64 since;   /* the same, or the beginning of the interval */
	u64 cut;     /* beginning of its interval: see struct cuts */
	u64 blocked; /* since then, by its waits that have ended */
	u64 runnable;
	u64 argument; /* of NVIDIA's driver: the parameters */
	u32 status;   /* place of the RM's status in them; 0: none. And IOCTL_OUTSIDE */
	u32 number;   /* of its target; 0: there were too many */
	struct origin origin;
	struct ioctl_target target;
};

/* No call of a function made it: it has rows of its own. */
#define IOCTL_OUTSIDE (1U << 31)

/* By thread. */
struct ioctl_call_hash {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct ioctl_call);
};
SHARED struct ioctl_call_hash ioctl_calls SEC(".maps");

SHARED const volatile bool measure_ioctl;
/* Whether all ioctls are rows of their own, and not parts of calls of functions. */
SHARED const volatile bool ioctl_rows;

/* The ioctl that the thread was in at `then`; NULL: none. */
static __always_inline struct ioctl_call *ioctl_at(u32 tid, u64 then)
{
	struct ioctl_call *call;

	if (!measure_ioctl)
		return NULL;
	call = bpf_map_lookup_elem(&ioctl_calls, &tid);
	return call && call->began && call->began <= then ? call : NULL;
}

#endif
