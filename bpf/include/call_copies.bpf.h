/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls that copy memory: how much, and from where to where, by their arguments. */
#ifndef STALLSCOPE_CALL_COPIES_BPF_H
#define STALLSCOPE_CALL_COPIES_BPF_H

#include "call_sums.bpf.h"

/* cudaMemcpyKind of driver_types.h, and one more. */
enum copy_direction {
	COPY_HOST_TO_HOST,
	COPY_HOST_TO_DEVICE,
	COPY_DEVICE_TO_HOST,
	COPY_DEVICE_TO_DEVICE,
	COPY_DEFAULT, /* by the addresses */
	COPY_UNKNOWN,
};

#define COPY_DIRECTION 7ULL
#define COPY_COUNTS (1ULL << 8) /* it is a copy, and no call around it is one */
#define COPY_INSIDE (1ULL << 9) /* it is one, or a call around it is */
#define COPY_SIZE (1ULL << 10)	/* its size is known */

/* Structs that describe copies, of CUDA's headers driver_types.h and cuda.h. */
enum copy_form {
	FORM_NONE,
	FORM_RUNTIME_3D, /* cudaMemcpy3DParms */
	FORM_DRIVER_2D,	 /* CUDA_MEMCPY2D */
	FORM_DRIVER_3D,	 /* CUDA_MEMCPY3D */
};

/* Copies that succeeded. */
struct call_copy_key {
	u32 tid;
	u32 tgid;
	u32 life;
	u32 function;
	u32 direction;
	u32 pad;
};

struct call_copy {
	u64 count;
	u64 bytes;
	u64 unknown; /* those whose size is not known */
	u64 total;
	u64 blocked;
	u64 runnable;
};

DEFINE_SUM_TABLES(call_copies, sizeof(struct call_copy_key), sizeof(struct call_copy));

static __always_inline u64 user_u64(u64 address)
{
	u64 found = 0;

	bpf_probe_read_user(&found, sizeof(found), (void *)address);
	return found;
}

/* CUmemorytype: 1 is the host's, 4 can be any. */
static __always_inline u32 direction_of(u32 from, u32 to)
{
	if (from == 4 || to == 4)
		return COPY_DEFAULT;
	if (!from || !to || from > 4 || to > 4)
		return COPY_UNKNOWN;
	if (from == 1)
		return to == 1 ? COPY_HOST_TO_HOST : COPY_HOST_TO_DEVICE;
	return to == 1 ? COPY_DEVICE_TO_HOST : COPY_DEVICE_TO_DEVICE;
}

/* The call at this place copies what a struct describes. */
__weak int read_struct(struct call_stack *stack, u32 place, u64 at)
{
	u64 extent[3] = {};
	struct open_call *call;
	u32 direction, form;

	if (!stack)
		return 0;
	call = call_at(stack, place);
	form = COOKIE_FORM(call->cookie);
	if (form == FORM_RUNTIME_3D) {
		bpf_probe_read_user(extent, sizeof(extent), (void *)(at + 128));
		direction = user_u64(at + 152);
		/* With an array at one end, its width is not in bytes. */
		if (user_u64(at) || user_u64(at + 64))
			extent[0] = 0;
	} else if (form == FORM_DRIVER_2D) {
		bpf_probe_read_user(extent, 2 * sizeof(u64), (void *)(at + 112));
		extent[2] = 1;
		direction = direction_of(user_u64(at + 16), user_u64(at + 72));
	} else {
		bpf_probe_read_user(extent, sizeof(extent), (void *)(at + 176));
		direction = direction_of(user_u64(at + 32), user_u64(at + 120));
	}
	call->bytes = extent[0] * extent[1] * extent[2];
	call->copy = direction < COPY_UNKNOWN ? direction : COPY_UNKNOWN;
	if (call->bytes)
		call->copy |= COPY_SIZE;
	return 0;
}

/* Reads from the arguments what the call at this place copies. */
__weak int read_arguments(struct call_stack *stack, u32 place)
{
	u64 cookie, direction = COPY_UNKNOWN;
	struct open_call *call;
	u32 size, times, kind;

	if (!stack)
		return 0;
	call = call_at(stack, place);
	cookie = call->cookie;
	size = COOKIE_SIZE(cookie);
	times = COOKIE_TIMES(cookie);
	kind = COOKIE_KIND(cookie);
	/* The first six are in registers, the others above the return address. */
	if (size > 6 || times > 6 || kind > 6)
		bpf_probe_read_user(&stack->arguments[7], 3 * sizeof(u64), (void *)(call->sp + sizeof(u64)));
	call->bytes = stack->arguments[size & (CALL_ARGUMENTS - 1)];
	if (cookie & COOKIE_NARROW)
		call->bytes = (u32)call->bytes;
	if (times)
		call->bytes *= stack->arguments[times & (CALL_ARGUMENTS - 1)];
	if (kind)
		direction = (u32)stack->arguments[kind & (CALL_ARGUMENTS - 1)];
	else if (COOKIE_DIRECTION(cookie))
		direction = COOKIE_DIRECTION(cookie) - 1;
	call->copy = direction < COPY_UNKNOWN ? direction : COPY_UNKNOWN;
	if (size)
		call->copy |= COPY_SIZE;
	return 0;
}

static __always_inline void read_copy(struct call_context *ctx, struct call_stack *stack, u32 place)
{
	struct open_call *call = call_at(stack, place);

	stack->arguments[1] = ctx->di;
	stack->arguments[2] = ctx->si;
	stack->arguments[3] = ctx->dx;
	stack->arguments[4] = ctx->cx;
	stack->arguments[5] = ctx->r8;
	stack->arguments[6] = ctx->r9;
	if (COOKIE_FORM(call->cookie))
		read_struct(stack, place, ctx->di);
	else
		read_arguments(stack, place);
	call->copy |= COPY_COUNTS | COPY_INSIDE;
}

__weak int add_copy(struct thread *t, struct open_call *call, u64 total)
{
	struct call_copy none = {}, *sum;
	struct call_copy_key key = {};
	void *table;

	if (!t || !call)
		return 0;
	key.tid = t->key.tid;
	key.tgid = t->key.tgid;
	key.life = t->key.life;
	key.function = call->cookie & COOKIE_FUNCTION;
	key.direction = call->copy & COPY_DIRECTION;
	table = table_of(&call_copies);
	sum = table ? bpf_map_lookup_elem(table, &key) : NULL;
	if (table && !sum) {
		if (!bpf_map_update_elem(table, &key, &none, BPF_NOEXIST))
			count_new_calls(CALL_KINDS);
		sum = bpf_map_lookup_elem(table, &key);
	}
	if (!sum) {
		tally(LOST_CALL_COPIES, 1);
		return 0;
	}
	sum->count++;
	if (call->copy & COPY_SIZE)
		sum->bytes += call->bytes;
	else
		sum->unknown++;
	sum->total += total;
	sum->blocked += call->blocked;
	sum->runnable += call->runnable;
	return 0;
}

/* A copy inside another one may know more. */
static __always_inline void refine_copy(struct open_call *outer, const struct open_call *call)
{
	u64 direction = call->copy & COPY_DIRECTION;

	if (!(outer->copy & COPY_INSIDE) || !(call->cookie & COOKIE_COPY))
		return;
	if ((outer->copy & COPY_DIRECTION) >= COPY_DEFAULT && direction < COPY_DEFAULT)
		outer->copy = (outer->copy & ~COPY_DIRECTION) | direction;
	if (!(outer->copy & COPY_SIZE) && call->copy & COPY_SIZE) {
		outer->bytes = call->bytes;
		outer->copy |= COPY_SIZE;
	}
}

#endif
