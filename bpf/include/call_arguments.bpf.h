/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls one by one, with their arguments: those of collectives, which are joined over processes afterwards. */
#ifndef STALLSCOPE_CALL_ARGUMENTS_BPF_H
#define STALLSCOPE_CALL_ARGUMENTS_BPF_H

#include "call_cookie.h"
#include "call_sums.bpf.h"
#include "open_calls.bpf.h"
#include "thread.bpf.h"

#define ARGUMENTS 12
#define REGISTER_ARGUMENTS 6 /* System V ABI, AMD64: integers and pointers; more are on the stack */
#define FIRST_REQUEST 3	     /* with COOKIE_REQUESTS: instead of this argument and the next ones, handles are kept */

/* Mirrored in tracers/engines/ebpf/measures/recorded_arguments.py, like the next one. */
struct open_arguments {
	u64 began; /* of its call: an entry may be older than the call that is open; 0: it is not written yet */
	u64 argument[ARGUMENTS];
	u32 tgid;
	u32 life;
	u32 function;
	u32 level;
};

/* A call that returned. */
struct call_arguments {
	struct open_arguments call;
	u64 ended;
	u64 ustack; /* where it was called; 0: not known */
	u64 blocked;
	u64 runnable;
	u64 result;
	u64 made; /* the word to which an argument leads: see COOKIE_MADE and COOKIE_MADE_SECOND */
	u32 tid;
	u32 unread; /* `made` could not be read */
};

/* Of calls that are open: by thread and depth. */
struct open_argument_hash {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, struct open_arguments);
};
struct open_argument_hash open_arguments SEC(".maps");

/* Initial value of an entry: too large for the BPF stack. Never written. */
struct blank_argument_array {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct open_arguments);
};
struct blank_argument_array blank_arguments SEC(".maps");

/* See call_span_ring. */
struct call_argument_ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
};
struct call_argument_ring call_arguments SEC(".maps");

enum call_argument_count {
	LOST_ARGUMENTS,	     /* the ring was full */
	LOST_OPEN_ARGUMENTS, /* the hash was */
	ARGUMENT_COUNTS,
};

struct call_argument_counts {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, ARGUMENT_COUNTS);
	__type(key, u32);
	__type(value, u64);
};
struct call_argument_counts call_argument_counts SEC(".maps");

const volatile bool record_call_arguments;

static __always_inline bool with_arguments(u64 cookie)
{
	return record_call_arguments && (cookie & (COOKIE_COPY | COOKIE_ARGUMENTS)) == COOKIE_ARGUMENTS;
}

static __always_inline void count_arguments(enum call_argument_count which)
{
	u32 key = which;
	u64 *value = bpf_map_lookup_elem(&call_argument_counts, &key);

	if (value)
		__sync_fetch_and_add(value, 1);
}

static __always_inline u64 argument_key(u32 tid, u32 depth)
{
	return (u64)tid << 32 | depth;
}

/* Address of the handles of a call that completes operations. */
static __always_inline u64 requests_at(struct open_arguments *kept, u64 cookie)
{
	return COOKIE_REQUESTS(cookie) == 1 ? kept->argument[0] : kept->argument[1];
}

/* Keeps the arguments of the call that begins. Those on the stack are above the return address. */
static __always_inline void keep_arguments(struct call_context *ctx, struct thread *t, struct open_call *call,
					   u32 depth)
{
	u64 key = argument_key(t->key.tid, depth);
	struct open_arguments *kept;
	u32 zero = 0;
	u64 at;

	kept = bpf_map_lookup_elem(&blank_arguments, &zero);
	if (!kept || bpf_map_update_elem(&open_arguments, &key, kept, BPF_ANY)) {
		count_arguments(LOST_OPEN_ARGUMENTS);
		call->bytes = 1; /* it is no copy: its loss is counted */
		return;
	}
	kept = bpf_map_lookup_elem(&open_arguments, &key);
	if (!kept)
		return;
	kept->argument[0] = ctx->di;
	kept->argument[1] = ctx->si;
	kept->argument[2] = ctx->dx;
	kept->argument[3] = ctx->cx;
	kept->argument[4] = ctx->r8;
	kept->argument[5] = ctx->r9;
	if (COOKIE_REQUESTS(call->cookie)) {
		at = requests_at(kept, call->cookie);
		bpf_probe_read_user(&kept->argument[FIRST_REQUEST], sizeof(u64) * (ARGUMENTS - FIRST_REQUEST),
				    (void *)at);
	} else {
		bpf_probe_read_user(&kept->argument[REGISTER_ARGUMENTS], sizeof(u64) * (ARGUMENTS - REGISTER_ARGUMENTS),
				    (void *)(ctx->sp + sizeof(u64)));
	}
	kept->tgid = t->key.tgid;
	kept->life = t->key.life;
	kept->function = call->cookie & COOKIE_FUNCTION;
	kept->level = depth;
	/* Who reads the entry of a call that goes on knows by it that the arguments are there. */
	barrier();
	kept->began = call->began;
}

/* Whether one of the handles that were kept when the call began is another one now. */
static __always_inline bool has_changed(struct open_arguments *kept, u64 cookie)
{
	u64 at = requests_at(kept, cookie);
	u64 requests[ARGUMENTS - FIRST_REQUEST] = {};
	u32 i;

	bpf_probe_read_user(requests, sizeof(requests), (void *)at);
	for (i = 0; i < ARGUMENTS - FIRST_REQUEST; i++)
		if (requests[i] != kept->argument[FIRST_REQUEST + i])
			return true;
	return false;
}

/* Hands on the call that has returned. */
__weak int add_arguments(struct thread *t, struct open_call *call, u64 now, u32 depth, u64 result)
{
	struct open_arguments *kept;
	struct call_arguments *done;
	u64 key, at;

	if (!t || !call)
		return 0;
	key = argument_key(t->key.tid, depth);
	kept = bpf_map_lookup_elem(&open_arguments, &key);
	if (!kept || kept->began != call->began) {
		if (!call->bytes)
			count_arguments(LOST_OPEN_ARGUMENTS);
		return 0;
	}
	if (call->cookie & COOKIE_IF_CHANGED && !has_changed(kept, call->cookie)) {
		bpf_map_delete_elem(&open_arguments, &key);
		return 0;
	}
	done = bpf_ringbuf_reserve(&call_arguments, sizeof(*done), 0);
	if (done) {
		done->call = *kept;
		done->ended = now;
		done->ustack = call->ustack;
		done->blocked = call->blocked;
		done->runnable = call->runnable;
		done->result = result;
		done->made = 0;
		done->tid = t->key.tid;
		done->unread = 0;
		if (COOKIE_MADE(call->cookie)) {
			at = COOKIE_MADE(call->cookie) - 1;
			at = at < ARGUMENTS ? kept->argument[at] : 0;
			if (bpf_probe_read_user(&done->made, sizeof(done->made), (void *)at))
				done->unread = 1;
		}
		bpf_ringbuf_submit(done, BPF_RB_NO_WAKEUP);
	} else {
		count_arguments(LOST_ARGUMENTS);
	}
	bpf_map_delete_elem(&open_arguments, &key);
	return 0;
}

/* The begin of a function that can throw: it has no probe at its return, at which an exception would end the program.
 * User space knows by another function that the call is done. Its end is its begin, its result where its return address
 * is: of two calls, one is inside the other one if that is deeper. */
static __always_inline void add_begin(struct call_context *ctx, u64 cookie, struct task_struct *task, bool trusted)
{
	u64 came = bpf_ktime_get_ns();
	struct call_arguments *begun;
	struct thread *t;

	if (!record_call_arguments || !running())
		return;
	t = find_thread(task, trusted);
	if (!t)
		return;
	begun = bpf_ringbuf_reserve(&call_arguments, sizeof(*begun), 0);
	if (!begun) {
		count_arguments(LOST_ARGUMENTS);
		return;
	}
	__builtin_memset(begun, 0, sizeof(*begun));
	begun->call.began = came;
	begun->call.argument[0] = ctx->di;
	begun->call.argument[1] = ctx->si;
	begun->call.argument[2] = ctx->dx;
	begun->call.argument[3] = ctx->cx;
	begun->call.argument[4] = ctx->r8;
	begun->call.argument[5] = ctx->r9;
	begun->call.tgid = t->key.tgid;
	begun->call.life = t->key.life;
	begun->call.function = cookie & COOKIE_FUNCTION;
	begun->ended = came;
	begun->result = ctx->sp;
	begun->tid = t->key.tid;
	if (cookie & COOKIE_MADE_SECOND && bpf_probe_read_user(&begun->made, sizeof(begun->made), (void *)ctx->si))
		begun->unread = 1;
	bpf_ringbuf_submit(begun, BPF_RB_NO_WAKEUP);
	tally(CALL_PROBES, 1);
	tally(CALL_PROBES_TIME, bpf_ktime_get_ns() - came);
}

/* The thread's open calls will not return. */
__weak int forget_arguments(u32 tid)
{
	u64 key;
	u32 i;

	for (i = 0; i < CALL_DEPTH; i++) {
		key = argument_key(tid, i);
		bpf_map_delete_elem(&open_arguments, &key);
	}
	return 0;
}

#endif
