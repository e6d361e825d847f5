/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls of functions in libraries: how often, how long, and what the thread did meanwhile.
 *
 * The programs run at uprobes, with preemption on: another thread can come to its own probe on the same CPU before one
 * is done. Memory of a CPU is therefore used by one of them at a time; a thread's own entries need no such care.
 *
 * A call ends by its return. Calls that a thread leaves in another way (longjmp, an exception) are found when it makes
 * another call above them, as the kernel does it, or returns from an outer one. */
#include "calls.bpf.h"
#include "measures.bpf.h"
#include "thread.bpf.h"
#include "user_stack.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* Latencies are counted in buckets, like those of ioctl calls. */
#define CALL_BUCKETS 112

/* A cookie: the number of the function, and how its result and its arguments are to be read. Mirrored in
 * tracers/apis/copies.py. */
#define COOKIE_FUNCTION 0xffffffffULL
#define COOKIE_ERRORS (1ULL << 32) /* the result is an int that is 0 unless it failed */
#define COOKIE_COPY (1ULL << 33)
#define COOKIE_SIZE(cookie) ((cookie) >> 34 & 15)     /* of a copy: the argument, from 1 on, that has it; 0: none */
#define COOKIE_TIMES(cookie) ((cookie) >> 38 & 15)    /* … and one by which it is to be multiplied */
#define COOKIE_KIND(cookie) ((cookie) >> 42 & 15)     /* … and one that has the direction */
#define COOKIE_FORM(cookie) ((cookie) >> 46 & 3)      /* … or the first one leads to a struct: enum copy_form */
#define COOKIE_NARROW (1ULL << 48)		      /* the size has 32 bits */
#define COOKIE_DIRECTION(cookie) ((cookie) >> 49 & 7) /* by the function: enum copy_direction + 1; 0: not */

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

/* Registers at a uprobe: struct pt_regs of arch/x86/include/uapi/asm/ptrace.h. */
struct call_context {
	u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};

/* What was done where: time is counted once, for the innermost call. */
struct call_time {
	u64 calls;
	u64 on_cpu;
	u64 blocked;
	u64 runnable;
};

struct call_key {
	u32 tid;
	u32 tgid;
	u32 life;
	u32 function;
};

struct call_sum {
	u64 count;
	u64 total;
	u64 self; /* without the calls that it made */
	u64 blocked;
	u64 runnable;
	u64 min;
	u64 max;
	u64 left;	/* ended without a return; not in `count` */
	u64 open;	/* not ended when the thread was: not in `count` */
	u64 open_time;	/* … and for how long */
	u64 open_inner; /* … and for how long in calls that they made */
	u32 latencies[CALL_BUCKETS];
};

struct call_failure {
	u32 tid;
	u32 tgid;
	u32 life;
	u32 function;
	s32 result;
	u32 pad;
};

/* The ioctls in a function's calls, and in the calls that these made. */
struct call_ioctl_key {
	u32 tid;
	u32 tgid;
	u32 life;
	u32 function;
	u32 number; /* of the target: see struct ioctl_call */
	u32 pad;
};

struct call_ioctl {
	u64 count;
	u64 total;
	u64 blocked;
	u64 runnable;
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
/* Calls that were too short to count. */
struct call_fast {
	u64 count;
	u64 total;
};

/* Tables that are nearly full are taken out. All but those of times have this many times fewer entries. */
#define CALL_KINDS 8

DEFINE_SUM_TABLES(call_times, sizeof(struct origin), sizeof(struct call_time));
DEFINE_SUM_TABLES(call_sums, sizeof(struct call_key), sizeof(struct call_sum));
DEFINE_SUM_TABLES(call_failures, sizeof(struct call_failure), sizeof(u64));
DEFINE_SUM_TABLES(call_ioctls, sizeof(struct call_ioctl_key), sizeof(struct call_ioctl));
DEFINE_SUM_TABLES(call_fast, sizeof(struct call_copy_key), sizeof(struct call_fast));
DEFINE_SUM_TABLES(call_copies, sizeof(struct call_copy_key), sizeof(struct call_copy));

/* Never written: initial values, too large for the BPF stack. */
struct call_blank {
	struct call_stack stack;
	struct call_sum sum;
};

struct call_blanks {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct call_blank);
};
struct call_blanks call_blanks SEC(".maps");

/* Whether a program uses the CPU's memory for stack walks. */
struct call_walkers {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
};
struct call_walkers call_walkers SEC(".maps");

enum call_loss {
	LOST_CALLS,	  /* no room: not counted at all */
	LOST_CALL_TIMES,  /* no room: the time of calls is that of no stack */
	LOST_CALL_ERRORS, /* no room: the error is not told */
	LOST_CALL_STACKS, /* the CPU's memory was in use: it is not known where the call came from */
	LOST_CALL_IOCTLS, /* no room: the ioctl is not told of the call */
	LOST_CALL_COPIES, /* no room: the call is not told of as a copy */
	LOST_CALL_DEPTHS, /* CALL_DEPTH calls were open: not counted at all, the time is that of the innermost of these */
	/* No losses: of threads that have ended. */
	CALL_PROBES,	  /* how often the programs ran */
	CALL_PROBES_TIME, /* … and for how long */
	CALL_STACKS_CUT, /* stacks of waits and ioctls that begin at the call, because their walks ended inside of it */
	LOST_FAST_CALLS, /* no room: a call that was too short to count is not told of */
	CALL_LOSSES,
};

struct call_loss_array {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, CALL_LOSSES);
	__type(key, u32);
	__type(value, u64);
};
struct call_loss_array call_losses SEC(".maps");

/* A call that returned, for a timeline. */
struct call_span {
	u64 begin;
	u64 end;
	u64 ustack; /* where it was called; 0: not known */
	u32 tid;
	u32 function;
	u32 level; /* 0: no other call was open */
	u32 life;
};

/* Read in bulk. A ring buffer of the kernel, since another thread can come to its own probe on the same CPU while one
 * is written. */
struct call_span_ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
};
struct call_span_ring call_spans SEC(".maps");

enum call_span_count {
	LOST_SPANS,
	SHORT_SPANS,
	SPAN_COUNTS,
};

struct call_span_counts {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SPAN_COUNTS);
	__type(key, u32);
	__type(value, u64);
};
struct call_span_counts call_span_counts SEC(".maps");

const volatile bool record_call_spans;
const volatile u64 call_over;	   /* ns; only calls that take longer count. 0: all */
const volatile bool calls_judged;  /* whether a call counts is known when it returns, also if `call_over` is 0 */
const volatile u64 call_span_over; /* ns; those that do not take longer are only counted. 0: none */

static __always_inline void tally(enum call_loss which, u64 number)
{
	u32 key = which;
	u64 *value = bpf_map_lookup_elem(&call_losses, &key);

	if (value)
		__sync_fetch_and_add(value, number);
}

static __always_inline void count_new_calls(u32 entries)
{
	u32 key = NEW_CALLS;
	u64 *value = bpf_map_lookup_elem(&counters, &key);

	if (value)
		*value += entries;
}

/* The verifier is to see that the index stays in bounds. */
static __always_inline struct open_call *call_at(struct call_stack *stack, u32 i)
{
	barrier_var(i);
	return &stack->calls[i & (CALL_DEPTH - 1)];
}

static __always_inline struct call_blank *blank(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&call_blanks, &zero);
}

static __always_inline void *table_of(void *tables)
{
	u32 slot = 0;

	if (intervals) /* to ask for the time costs as much as a lookup */
		slot = interval_at(bpf_ktime_get_ns()) & (SUM_TABLES - 1);
	return bpf_map_lookup_elem(tables, &slot);
}

/* Adds to what was done at an origin. Only the thread itself, or its switch, does so. */
__weak int add_call_time(struct origin *at, struct call_time *what)
{
	struct call_time *sum = NULL, copy, *added = &copy;
	struct origin own, *key = &own;
	void *table;

	if (!at || !what)
		return 0;
	/* On 6.1, a map takes no pointers that were passed to a global function. */
	own = *at;
	copy = *what;
	table = table_of(&call_times);
	if (!table)
		return 0;
	sum = bpf_map_lookup_elem(table, key);
	if (!sum && bpf_map_update_elem(table, key, added, BPF_NOEXIST) == 0) {
		count_new_calls(1);
		return 0;
	}
	if (!sum)
		sum = bpf_map_lookup_elem(table, key);
	if (!sum) {
		tally(LOST_CALL_TIMES, added->calls + !added->calls);
		return 0;
	}
	sum->calls += added->calls;
	sum->on_cpu += added->on_cpu;
	sum->blocked += added->blocked;
	sum->runnable += added->runnable;
	return 0;
}

static __always_inline struct call_sum *sum_of(const struct call_key *key)
{
	void *table = table_of(&call_sums);
	struct call_blank *none;
	struct call_sum *sum;

	if (!table)
		return NULL;
	sum = bpf_map_lookup_elem(table, key);
	if (!sum) {
		none = blank();
		if (!none)
			return NULL;
		if (bpf_map_update_elem(table, key, &none->sum, BPF_NOEXIST) == 0)
			count_new_calls(CALL_KINDS);
		sum = bpf_map_lookup_elem(table, key);
	}
	return sum;
}

/* The thread's calls, those of its program before an exec forgotten. NULL: no room. */
static __always_inline struct call_stack *stack_of(const struct thread *t)
{
	struct call_blank *none;
	struct call_stack *stack;
	u32 tid = t->key.tid;

	stack = bpf_map_lookup_elem(&call_stacks, &tid);
	if (!stack) {
		none = blank();
		if (!none)
			return NULL;
		bpf_map_update_elem(&call_stacks, &tid, &none->stack, BPF_NOEXIST);
		stack = bpf_map_lookup_elem(&call_stacks, &tid);
	}
	if (stack && stack->life != t->key.life) {
		stack->depth = 0;
		stack->life = t->key.life;
	}
	return stack;
}

static __always_inline struct call_key key_of(const struct thread *t, const struct open_call *call)
{
	struct call_key key = { t->key.tid, t->key.tgid, t->key.life, call->cookie & COOKIE_FUNCTION };

	return key;
}

/* The innermost call ended without a return. */
__weak int left_call(struct thread *t, struct call_stack *stack)
{
	struct call_sum *sum;
	struct call_key key;
	u32 last;

	if (!t || !stack)
		return 0;
	last = stack->depth - 1;
	if (last >= CALL_DEPTH)
		return 0;
	key = key_of(t, call_at(stack, last));
	sum = sum_of(&key);
	if (sum)
		sum->left++;
	else
		tally(LOST_CALLS, 1);
	stack->depth = last;
	return 0;
}

/* The id of the stack where the function was called, its own frame included. */
static __always_inline u64 calling_stack(struct call_context *ctx, u32 tgid)
{
	u32 slot = CONTEXT_CALL, zero = 0, *busy;
	struct stack_record *record;
	u64 id = 0;
	u8 end;

	record = bpf_map_lookup_elem(&stack_scratch, &slot);
	busy = bpf_map_lookup_elem(&call_walkers, &zero);
	if (!record || !busy)
		return 0;
	if (__sync_val_compare_and_swap(busy, 0, 1)) {
		tally(LOST_CALL_STACKS, 1);
		return 0;
	}
	id = walk_user(CONTEXT_CALL, ctx->cs, ctx->ip, ctx->sp, ctx->bp, tgid, true, record, &end);
	__sync_lock_test_and_set(busy, 0);
	return id;
}

/* Whether the innermost call began where another one begins now. */
static __always_inline bool same_place(struct call_stack *stack, u64 sp)
{
	u32 last = stack->depth - 1;

	return last < CALL_DEPTH && call_at(stack, last)->sp == sp;
}

/* Drops the calls that are not open any more when another one begins whose return address is at `sp`. At the same place
 * is a call that ended by calling this one: then the kernel's trampoline is the return address. */
__weak int drop_left(struct thread *t, struct call_stack *stack, u64 sp, u64 returns)
{
	u32 i, last;

	if (!t || !stack)
		return 0;
	for (i = 0; i < CALL_DEPTH; i++) {
		last = stack->depth - 1;
		if (last >= CALL_DEPTH || call_at(stack, last)->sp > sp)
			break;
		if (call_at(stack, last)->sp == sp && is_trampoline(returns))
			break;
		left_call(t, stack);
	}
	return 0;
}

/* Memory of this kind of program is not interrupted by others of the thread, but it can be switched out. */
static __always_inline void works(struct call_stack *stack, u64 is)
{
	barrier();
	*(volatile u64 *)&stack->working = is;
	barrier();
}

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

/* Returns whether its return is of interest. */
static __always_inline bool on_call(struct call_context *ctx, u64 cookie, struct task_struct *task, bool trusted)
{
	u64 came = bpf_ktime_get_ns(), returns = 0, outer = 0;
	struct call_stack *stack;
	struct open_call *call;
	struct thread *t;
	u32 depth;

	if (!running())
		return false;
	t = find_thread(task, trusted);
	if (!t)
		return false;
	stack = stack_of(t);
	if (!stack) {
		tally(LOST_CALLS, 1);
		return false;
	}
	/* Walks up a stack need it, and calls at the same place of the stack. */
	if (user_stacks || same_place(stack, ctx->sp))
		bpf_probe_read_user(&returns, sizeof(returns), (void *)ctx->sp);
	if (stack->depth)
		drop_left(t, stack, ctx->sp, returns);
	depth = stack->depth;
	if (depth >= CALL_DEPTH) {
		tally(LOST_CALL_DEPTHS, 1);
		return false;
	}
	if (depth && depth <= CALL_DEPTH) {
		struct open_call *from = call_at(stack, depth - 1);

		outer = from->callers;
		if (from->sp == ctx->sp)
			returns = from->returns;
	}
	call = call_at(stack, depth);
	__builtin_memset(call, 0, sizeof(*call));
	call->sp = ctx->sp;
	call->returns = returns;
	call->callers = (outer ^ returns) * 0xff51afd7ed558ccdULL | 1;
	call->cookie = cookie;
	if (user_stacks)
		call->ustack = calling_stack(ctx, t->key.tgid);
	if (cookie & COOKIE_COPY)
		read_copy(ctx, stack, depth);
	if (depth && depth <= CALL_DEPTH && call_at(stack, depth - 1)->copy & COPY_INSIDE) {
		call->copy |= COPY_INSIDE;
		call->copy &= ~COPY_COUNTS;
	}
	works(stack, 1);
	call->began = bpf_ktime_get_ns();
	barrier();
	stack->depth = depth + 1;
	works(stack, 0);
	stack->probes++;
	stack->probes_time += call->began - came;
	return true;
}

/* Index into `latencies`: see ioctl_bucket(). */
extern int ioctl_bucket(u64 ns);

__weak int add_call_failure(struct thread *t, u32 function, s32 result)
{
	struct call_failure failure = {};
	u64 one = 1, *number;
	void *table;

	if (!t)
		return 0;
	failure.tid = t->key.tid;
	failure.tgid = t->key.tgid;
	failure.life = t->key.life;
	failure.function = function;
	failure.result = result;
	table = table_of(&call_failures);
	if (!table)
		return 0;
	number = bpf_map_lookup_elem(table, &failure);
	if (!number && bpf_map_update_elem(table, &failure, &one, BPF_NOEXIST) == 0) {
		count_new_calls(CALL_KINDS);
		return 0;
	}
	if (!number)
		number = bpf_map_lookup_elem(table, &failure);
	if (number)
		__sync_fetch_and_add(number, 1);
	else
		tally(LOST_CALL_ERRORS, 1);
	return 0;
}

static __always_inline void add_call(struct thread *t, const struct open_call *call, u64 total)
{
	struct call_key key = key_of(t, call);
	struct call_sum *sum = sum_of(&key);
	u32 bucket;

	if (!sum) {
		tally(LOST_CALLS, 1);
		return;
	}
	if (!sum->count || total < sum->min)
		sum->min = total;
	if (total > sum->max)
		sum->max = total;
	sum->count++;
	sum->total += total;
	sum->self += total - call->inner;
	sum->blocked += call->blocked;
	sum->runnable += call->runnable;
	bucket = ioctl_bucket(total);
	if (bucket < CALL_BUCKETS)
		sum->latencies[bucket]++;
}

static __always_inline void count_span(enum call_span_count which)
{
	u32 key = which;
	u64 *value = bpf_map_lookup_elem(&call_span_counts, &key);

	if (value)
		__sync_fetch_and_add(value, 1);
}

__weak int add_span(struct thread *t, struct open_call *call, u64 now, u32 level)
{
	struct call_span span = {};

	if (!t || !call)
		return 0;
	span.begin = call->began;
	span.end = now;
	span.ustack = call->ustack;
	span.tid = t->key.tid;
	span.life = t->key.life;
	span.function = call->cookie & COOKIE_FUNCTION;
	span.level = level;
	if (call_span_over && now - call->began <= call_span_over)
		count_span(SHORT_SPANS);
	else if (bpf_ringbuf_output(&call_spans, &span, sizeof(span), BPF_RB_NO_WAKEUP))
		count_span(LOST_SPANS);
	return 0;
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

static __always_inline bool judged(void)
{
	return call_over || calls_judged;
}

static __always_inline bool counts(u64 ns)
{
	return !call_over || ns > call_over;
}

/* The waits of a call that does not count are those of the call around it. */
static __always_inline void pass_waits(struct open_call *outer, const struct open_call *call)
{
	outer->blocked += call->blocked;
	outer->runnable += call->runnable;
	if (call->longest > outer->longest) {
		outer->longest = call->longest;
		outer->longest_ustack = call->longest_ustack;
		outer->longest_kstack = call->longest_kstack;
		outer->longest_state = call->longest_state;
	}
}

/* The innermost call is too short to count: its time is that of the call around it, which may be slow. */
__weak int drop_fast(struct call_stack *stack)
{
	struct open_call *call, *outer;
	u32 last;

	if (!stack)
		return 0;
	last = stack->depth - 1;
	if (last >= CALL_DEPTH)
		return 0;
	stack->depth = last;
	if (!last)
		return 0;
	call = call_at(stack, last);
	outer = call_at(stack, last - 1);
	pass_waits(outer, call);
	return 0;
}

/* Adds up the calls that are too short to count. */
__weak int add_fast(struct thread *t, struct open_call *call, u64 total)
{
	struct call_fast one = { 1, total }, *sum;
	struct call_copy_key key = {};
	void *table;

	if (!t || !call)
		return 0;
	key.tid = t->key.tid;
	key.tgid = t->key.tgid;
	key.life = t->key.life;
	key.function = call->cookie & COOKIE_FUNCTION;
	table = table_of(&call_fast);
	sum = table ? bpf_map_lookup_elem(table, &key) : NULL;
	if (sum) {
		sum->count++;
		sum->total += total;
	} else if (!table || bpf_map_update_elem(table, &key, &one, BPF_NOEXIST)) {
		tally(LOST_FAST_CALLS, 1);
	} else {
		count_new_calls(CALL_KINDS);
	}
	return 0;
}

/* The waits of a call that counts, if that is known at its return, without those of inner ones that counted: all are at the place of the longest. */
__weak int add_slow_waits(struct thread *t, struct open_call *call)
{
	struct call_time waited = {};
	struct origin key = {};

	if (!t || !call || !call->longest)
		return 0;
	waited.blocked = call->blocked - call->slow_blocked;
	waited.runnable = call->runnable - call->slow_runnable;
	key.ustack = call->longest_ustack;
	key.kstack = call->longest_kstack;
	key.state = call->longest_state;
	key.tid = t->key.tid;
	key.tgid = t->key.tgid;
	key.life = t->key.life;
	add_call_time(&key, &waited);
	return 0;
}

/* The innermost call has returned. */
__weak int end_call(struct thread *t, struct call_stack *stack, u64 now, u64 result)
{
	struct origin key = { .state = RUNNING };
	struct call_time done = { .calls = 1 };
	struct open_call *call, *outer;
	u64 total, on_cpu;
	u32 last;

	if (!t || !stack)
		return 0;
	last = stack->depth - 1;
	if (last >= CALL_DEPTH)
		return 0;
	call = call_at(stack, last);
	total = now - call->began;
	if (!counts(total)) {
		add_fast(t, call, total);
		return drop_fast(stack);
	}
	stack->depth = last;
	on_cpu = total - call->blocked - call->runnable;
	add_call(t, call, total);
	if (record_call_spans)
		add_span(t, call, now, last);
	key.ustack = call->ustack;
	key.tid = t->key.tid;
	key.tgid = t->key.tgid;
	key.life = t->key.life;
	done.on_cpu = on_cpu - call->inner_on_cpu;
	add_call_time(&key, &done);
	if (judged())
		add_slow_waits(t, call);
	if (call->cookie & COOKIE_ERRORS && (u32)result)
		add_call_failure(t, call->cookie & COOKIE_FUNCTION, result);
	else if (call->copy & COPY_COUNTS)
		add_copy(t, call, total);
	if (!last || last >= CALL_DEPTH)
		return 0;
	outer = call_at(stack, last - 1);
	outer->blocked += call->blocked;
	outer->runnable += call->runnable;
	outer->slow_blocked += call->blocked;
	outer->slow_runnable += call->runnable;
	outer->inner += total;
	outer->inner_on_cpu += on_cpu;
	refine_copy(outer, call);
	return 0;
}

/* The place in the stack of the call that returns; CALL_DEPTH: it began before the trace. */
__weak int find_call(struct call_stack *stack, u64 sp, u64 cookie)
{
	u32 i, at;

	if (!stack)
		return CALL_DEPTH;
	for (i = 0; i < CALL_DEPTH; i++) {
		at = stack->depth - 1 - i;
		if (at >= CALL_DEPTH)
			break;
		if (call_at(stack, at)->sp == sp && call_at(stack, at)->cookie == cookie)
			return at;
	}
	return CALL_DEPTH;
}

/* `asked`: questions about it were answered before, see ask_return(). */
static __always_inline void on_call_return(struct call_context *ctx, u64 cookie, struct task_struct *task, bool trusted,
					   bool asked)
{
	struct call_stack *stack;
	struct thread *t;
	u32 tid, at, i;
	u64 now;

	if (!running()) /* it goes on at the trace's end */
		return;
	t = find_thread(task, trusted);
	if (!t)
		return;
	tid = t->key.tid;
	stack = bpf_map_lookup_elem(&call_stacks, &tid);
	if (!stack || stack->life != t->key.life)
		return;
	/* The return has removed its address from the stack. */
	at = find_call(stack, ctx->sp - sizeof(u64), cookie);
	if (at >= CALL_DEPTH)
		return;
	for (i = 0; i < CALL_DEPTH && stack->depth > at + 1; i++)
		left_call(t, stack);
	works(stack, 1);
	now = asked ? stack->returned : bpf_ktime_get_ns();
	end_call(t, stack, now, ctx->ax);
	works(stack, 0);
	stack->probes++;
	stack->probes_time += bpf_ktime_get_ns() - now;
}

/* The calls that a thread is in; NULL: it made none in this life. */
static __always_inline struct call_stack *calls_of(struct thread *t)
{
	u32 tid = t->key.tid;
	struct call_stack *stack = bpf_map_lookup_elem(&call_stacks, &tid);

	return stack && stack->life == t->key.life ? stack : NULL;
}

int calls_inside(struct thread *t)
{
	struct call_stack *stack = t ? calls_of(t) : NULL;

	return stack && stack->depth;
}

u64 calls_stack(struct thread *t)
{
	struct call_stack *stack = t ? calls_of(t) : NULL;
	u32 last = stack ? stack->depth - 1 : CALL_DEPTH;

	if (last >= CALL_DEPTH)
		return 0;
	tally(CALL_STACKS_CUT, 1);
	return call_at(stack, last)->ustack;
}

/* The time on a core of calls that had not ended when the thread did. That of waits was counted when they ended. */
static __always_inline void add_open_times(struct thread *t, struct call_stack *stack, u64 now)
{
	u64 blocked = 0, runnable = 0, inner = 0, spent;
	struct origin key = { .state = RUNNING };
	struct call_time done = {};
	struct open_call *call;
	u32 i, at;

	key.tid = t->key.tid;
	key.tgid = t->key.tgid;
	key.life = t->key.life;
	/* From the innermost one on: what it did is part of the outer ones. */
	for (i = 0; i < CALL_DEPTH; i++) {
		at = stack->depth - 1 - i;
		if (at >= CALL_DEPTH)
			break;
		call = call_at(stack, at);
		blocked += call->blocked;
		runnable += call->runnable;
		spent = now - call->began - blocked - runnable;
		if ((s64)spent < 0)
			spent = 0;
		done.on_cpu = spent - call->inner_on_cpu - inner;
		inner = spent;
		key.ustack = call->ustack;
		if ((s64)done.on_cpu > 0)
			add_call_time(&key, &done);
	}
}

/* None of the thread's calls will return: it executes another program. */
int calls_left(struct thread *t)
{
	struct call_stack *stack = t ? calls_of(t) : NULL;
	u32 i;

	if (!stack)
		return 0;
	for (i = 0; i < CALL_DEPTH && stack->depth; i++)
		left_call(t, stack);
	return 0;
}

int calls_gone(struct thread *t, u64 now)
{
	struct call_stack *stack;
	struct call_sum *sum;
	struct call_key key;
	u32 tid, i;

	if (!t)
		return 0;
	tid = t->key.tid;
	stack = bpf_map_lookup_elem(&call_stacks, &tid);
	if (!stack)
		return 0;
	for (i = 0; call_over && i < CALL_DEPTH && stack->depth - 1 < CALL_DEPTH; i++) {
		if (counts(now - call_at(stack, stack->depth - 1)->began))
			break;
		drop_fast(stack);
	}
	for (i = 0; i < CALL_DEPTH && i < stack->depth; i++) {
		if (judged() && stack->life == t->key.life)
			add_slow_waits(t, call_at(stack, i));
		key = key_of(t, call_at(stack, i));
		sum = sum_of(&key);
		if (!sum)
			continue;
		sum->open++;
		sum->open_time += now - call_at(stack, i)->began;
		sum->open_inner += call_at(stack, i)->inner;
		if (i + 1 < stack->depth)
			sum->open_inner += now - call_at(stack, i + 1)->began;
	}
	if (stack->life == t->key.life) /* else it has executed another program */
		add_open_times(t, stack, now);
	tally(CALL_PROBES, stack->probes);
	tally(CALL_PROBES_TIME, stack->probes_time);
	bpf_map_delete_elem(&call_stacks, &tid);
	return 0;
}

/* Adds an ioctl to the call in this place of the thread's stack. */
__weak int add_call_ioctl(struct call_stack *stack, u32 at, struct origin *of, struct call_ioctl *what)
{
	struct call_ioctl added, *sum;
	struct call_ioctl_key key = {};
	void *table;

	if (!stack || !of || !what)
		return 0;
	added = *what;
	key.tid = of->tid;
	key.tgid = of->tgid;
	key.life = of->life;
	key.function = call_at(stack, at)->cookie & COOKIE_FUNCTION;
	key.number = of->state >> NUMBER_SHIFT;
	table = table_of(&call_ioctls);
	sum = table ? bpf_map_lookup_elem(table, &key) : NULL;
	if (sum) {
		sum->count += added.count;
		sum->total += added.total;
		sum->blocked += added.blocked;
		sum->runnable += added.runnable;
	} else if (!table || bpf_map_update_elem(table, &key, &added, BPF_NOEXIST)) {
		tally(LOST_CALL_IOCTLS, 1);
	} else {
		count_new_calls(CALL_KINDS);
	}
	return 0;
}

/* An ioctl returns: its time on a core is counted here, and no longer for the call that the thread is in. That of its
 * waits was when they ended. */
int calls_ioctl(struct origin *of, u64 began, u64 now)
{
	struct call_time done = {};
	struct call_ioctl sum = { .count = 1 };
	struct call_stack *stack;
	struct open_call *call;
	struct origin key;
	u64 on_cpu, most;
	u32 tid, last, i;

	if (!of)
		return 0;
	key = *of;
	tid = key.tid;
	stack = bpf_map_lookup_elem(&call_stacks, &tid);
	if (!stack || stack->life != key.life)
		return 0;
	last = stack->depth - 1;
	if (last >= CALL_DEPTH)
		return 0;
	call = call_at(stack, last);
	if (began < call->began)
		return 0;
	sum.total = now - began;
	if (stack->ioctl == began) {
		sum.blocked = stack->ioctl_blocked;
		sum.runnable = stack->ioctl_runnable;
	}
	on_cpu = sum.total - sum.blocked - sum.runnable;
	/* A wait in the middle of ioctl_return() is the call's, and not the ioctl's. */
	most = now - call->began - call->blocked - call->runnable - call->inner_on_cpu;
	if (on_cpu > most)
		on_cpu = (s64)most > 0 ? most : 0;
	call->inner_on_cpu += on_cpu;
	done.on_cpu = on_cpu;
	add_call_time(&key, &done);
	for (i = 0; i < CALL_DEPTH && i <= last; i++)
		add_call_ioctl(stack, i, &key, &sum);
	return 0;
}

/* Remembers the place of the longest wait, of one in which the thread was blocked if there is any. */
__weak int note_wait(struct open_call *call, struct origin *at, struct call_time *what)
{
	u64 weight;

	if (!call || !at || !what)
		return 0;
	weight = what->blocked ? what->blocked | 1ULL << 62 : what->runnable;
	if (weight <= call->longest)
		return 0;
	call->longest = weight;
	call->longest_ustack = at->ustack;
	call->longest_kstack = at->kstack;
	call->longest_state = at->state;
	return 0;
}

/* See wait_ended() in sched.bpf.c. The user stack is that of the wait, or of the ioctl in which it was, or else of the
 * call: its function is always there. */
int calls_waited(struct thread *t, u64 now, u64 waits)
{
	struct call_time waited = {};
	struct call_stack *stack;
	struct ioctl_call *ioctl;
	struct open_call *call;
	struct origin key;
	u32 last;

	if (!t || !t->out)
		return 0;
	stack = calls_of(t);
	if (!stack || stack->working)
		return 0;
	last = stack->depth - 1;
	if (last >= CALL_DEPTH)
		return 0;
	call = call_at(stack, last);
	if (t->out < call->began)
		return 0;
	waited.blocked = blocked_part(t, now);
	waited.runnable = now - t->out - waited.blocked;
	call->blocked += waited.blocked;
	call->runnable += waited.runnable;
	key = t->key;
	if (t->late_out == t->out)
		key.ustack = t->late_ustack;
	ioctl = ioctl_at(t->key.tid, t->out);
	if (ioctl && ioctl->began >= call->began) {
		if (stack->ioctl != ioctl->began) {
			stack->ioctl = ioctl->began;
			stack->ioctl_blocked = 0;
			stack->ioctl_runnable = 0;
		}
		stack->ioctl_blocked += waited.blocked;
		stack->ioctl_runnable += waited.runnable;
		key.state |= ioctl->number << NUMBER_SHIFT;
		key.ustack = ioctl->origin.ustack;
	} else if ((t->late_out == t->out ? t->late_end : t->end) == WALK_IN_CALL) {
		key.ustack = calls_stack(t);
	}
	if (!judged())
		return add_call_time(&key, &waited);
	note_wait(call, &key, &waited);
	return 0;
}

/* Entry and return in one: session links, since 6.13. A value other than 0 skips the return. */
static __always_inline int on_session(struct call_context *ctx, struct task_struct *task, bool trusted)
{
	u64 cookie = bpf_get_attach_cookie(ctx);

	/* At the return, the function's address is no longer where the thread is. */
	if (bpf_get_func_ip(ctx) == ctx->ip)
		return !on_call(ctx, cookie, task, trusted);
	on_call_return(ctx, cookie, task, trusted, false);
	return 0;
}

SEC("uprobe")
int calls_session(struct call_context *ctx)
{
	return on_session(ctx, bpf_get_current_task_btf(), true);
}

SEC("uprobe")
int calls_enter(struct call_context *ctx)
{
	on_call(ctx, bpf_get_attach_cookie(ctx), bpf_get_current_task_btf(), true);
	return 0;
}

SEC("uprobe")
int calls_return(struct call_context *ctx)
{
	on_call_return(ctx, bpf_get_attach_cookie(ctx), bpf_get_current_task_btf(), true, false);
	return 0;
}

SEC("uprobe")
int calls_session_raw(struct call_context *ctx)
{
	return on_session(ctx, (void *)bpf_get_current_task(), false);
}

SEC("uprobe")
int calls_enter_raw(struct call_context *ctx)
{
	on_call(ctx, bpf_get_attach_cookie(ctx), (void *)bpf_get_current_task(), false);
	return 0;
}

SEC("uprobe")
int calls_return_raw(struct call_context *ctx)
{
	on_call_return(ctx, bpf_get_attach_cookie(ctx), (void *)bpf_get_current_task(), false, false);
	return 0;
}

#include "kernel_calls.bpf.h"
#include "questions.bpf.h"
