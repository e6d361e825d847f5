/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the programs of questions use. Compiled by bcc behind the numbers that source.py defines: no file includes it. */
#include <uapi/linux/ptrace.h>

#define MAP(number) ((void *)bpf_pseudo_fd(1, number))
#define INLINE static inline __attribute__((always_inline))

struct answer_key {
	u32 question;
	u32 function;
	s32 bucket;
	u32 pad;
};

struct value_key {
	u32 question;
	u32 function;
	u8 text[TEXT_BYTES];
};

struct answer {
	u64 count;
	u64 sum;
};

/* A call that has not returned: where its return address is, and of which function. */
struct call_key {
	u64 sp;
	u32 tid;
	u32 function;
};

struct saved {
	u64 faults; /* by place: it could not be read */
	u64 numbers[SAVED_NUMBERS];
	u8 texts[SAVED_TEXTS][TEXT_BYTES];
};

/* The begin of struct call_stack of bpf/include/open_calls.bpf.h. */
struct thread_calls {
	u32 depth;
	u32 life;
	u64 others[6];
	u64 duration;
};

struct rate {
	u64 second;
	u64 count;
};

static u64 (*cookie_of)(void *ctx) = (void *)174; /* bpf_get_attach_cookie(), 5.15 */

#define DEFINE_LOAD(type, wide)                                                                                        \
	INLINE u64 load_##type(u64 at, u64 *fault)                                                                     \
	{                                                                                                              \
		type value = 0;                                                                                        \
		if (bpf_probe_read_user(&value, sizeof(value), (void *)at))                                            \
			*fault = 1;                                                                                    \
		return (u64)(wide)value;                                                                               \
	}
typedef s8 i8;
typedef s16 i16;
typedef s32 i32;
typedef s64 i64;
DEFINE_LOAD(u8, u64)
DEFINE_LOAD(u16, u64)
DEFINE_LOAD(u32, u64)
DEFINE_LOAD(u64, u64)
DEFINE_LOAD(i8, s64)
DEFINE_LOAD(i16, s64)
DEFINE_LOAD(i32, s64)
DEFINE_LOAD(i64, s64)

#define DEFINE_FIELD(type, wide)                                                                                       \
	INLINE u64 field_##type(struct pt_regs *ctx, u32 at, u64 *fault)                                               \
	{                                                                                                              \
		type value = 0;                                                                                        \
		if (bpf_probe_read_kernel(&value, sizeof(value), (u8 *)ctx + at))                                      \
			*fault = 1;                                                                                    \
		return (u64)(wide)value;                                                                               \
	}
DEFINE_FIELD(u8, u64)
DEFINE_FIELD(u16, u64)
DEFINE_FIELD(u32, u64)
DEFINE_FIELD(u64, u64)
DEFINE_FIELD(i8, s64)
DEFINE_FIELD(i16, s64)
DEFINE_FIELD(i32, s64)
DEFINE_FIELD(i64, s64)

/* A string that a word of a tracepoint's record says the place of: enum Layout of nodes.py. */
INLINE long field_text(void *to, const u32 size, struct pt_regs *ctx, u32 at, u32 layout)
{
	u32 place = 0;

	if (bpf_probe_read_kernel(&place, sizeof(place), (u8 *)ctx + at))
		return -1;
	place &= 0xffff;
	if (layout == 2)
		place += at + sizeof(place);
	return bpf_probe_read_kernel_str(to, size, (u8 *)ctx + place);
}

INLINE u64 divided(u64 a, u64 b, u64 *fault)
{
	if (!b) {
		*fault = 1;
		return 0;
	}
	return a / b;
}

INLINE u64 rest(u64 a, u64 b, u64 *fault)
{
	return a - divided(a, b, fault) * b;
}

/* BPF divides only numbers without a sign. */
INLINE u64 divided_signed(u64 a, u64 b, u64 *fault)
{
	u64 found = divided((s64)a < 0 ? 0 - a : a, (s64)b < 0 ? 0 - b : b, fault);

	return (s64)(a ^ b) < 0 ? 0 - found : found;
}

INLINE u64 rest_signed(u64 a, u64 b, u64 *fault)
{
	return a - divided_signed(a, b, fault) * b;
}

INLINE u64 shifted_left(u64 a, u64 by)
{
	return by < 64 ? a << by : 0;
}

INLINE u64 shifted_right(u64 a, u64 by)
{
	return by < 64 ? a >> by : 0;
}

INLINE u64 shifted_right_signed(u64 a, u64 by)
{
	return (u64)((s64)a >> (by < 64 ? by : 63));
}

INLINE void lose(u32 which)
{
	u64 *number = bpf_map_lookup_elem(MAP(MAP_LOSSES), &which);

	if (number)
		__sync_fetch_and_add(number, 1);
}

INLINE void resume(struct pt_regs *ctx, u32 which)
{
	bpf_tail_call_((u64)MAP(MAP_RESUME), ctx, which);
}

/* 0 of 0; of others the number of bits, negative as the number is. */
INLINE s32 bucket_of(u64 value, u32 is_signed)
{
	u32 negative = is_signed && (s64)value < 0;
	s32 bits = 0;

	if (negative)
		value = 0 - value;
	if (value >> 32) {
		bits += 32;
		value >>= 32;
	}
	if (value >> 16) {
		bits += 16;
		value >>= 16;
	}
	if (value >> 8) {
		bits += 8;
		value >>= 8;
	}
	if (value >> 4) {
		bits += 4;
		value >>= 4;
	}
	if (value >> 2) {
		bits += 2;
		value >>= 2;
	}
	bits += value >> 1 ? 2 : value;
	return negative ? -bits : bits;
}

INLINE void add(struct pt_regs *ctx, u32 question, s32 bucket, u64 value)
{
	struct answer_key key = {};
	struct answer first = { 1, value }, *known;

	key.question = question;
	key.function = (u32)cookie_of(ctx);
	key.bucket = bucket;
	known = bpf_map_lookup_elem(MAP(MAP_ANSWERS), &key);
	if (!known) {
		if (!bpf_map_update_elem(MAP(MAP_ANSWERS), &key, &first, BPF_NOEXIST))
			return;
		known = bpf_map_lookup_elem(MAP(MAP_ANSWERS), &key);
	}
	if (!known) {
		lose(LOST_ROOM);
		return;
	}
	__sync_fetch_and_add(&known->count, 1);
	__sync_fetch_and_add(&known->sum, value);
}

/* A value of its own: text, or 8 bytes of a number. Those that have no room are counted together. */
INLINE void add_value(struct pt_regs *ctx, struct value_key *key)
{
	u64 first = 1, *known;

	known = bpf_map_lookup_elem(MAP(MAP_VALUES), key);
	if (!known) {
		if (!bpf_map_update_elem(MAP(MAP_VALUES), key, &first, BPF_NOEXIST))
			return;
		known = bpf_map_lookup_elem(MAP(MAP_VALUES), key);
	}
	if (known)
		__sync_fetch_and_add(known, 1);
	else
		add(ctx, key->question, 0, 0);
}

INLINE struct saved *new_saved(struct pt_regs *ctx, u64 ids)
{
	struct call_key key = { ctx->sp, (u32)ids, (u32)cookie_of(ctx) };
	struct saved *blank;
	u32 zero = 0;

	blank = bpf_map_lookup_elem(MAP(MAP_BLANK), &zero);
	if (!blank)
		return 0;
	bpf_map_update_elem(MAP(MAP_SAVED), &key, blank, BPF_ANY);
	return bpf_map_lookup_elem(MAP(MAP_SAVED), &key);
}

/* The return has removed its address from the stack. */
INLINE struct saved *old_saved(struct pt_regs *ctx, u64 ids)
{
	struct call_key key = { ctx->sp - 8, (u32)ids, (u32)cookie_of(ctx) };

	return bpf_map_lookup_elem(MAP(MAP_SAVED), &key);
}

INLINE void forget_saved(struct pt_regs *ctx, u64 ids)
{
	struct call_key key = { ctx->sp - 8, (u32)ids, (u32)cookie_of(ctx) };

	bpf_map_delete_elem(MAP(MAP_SAVED), &key);
}

/* ns of the call that returns. */
INLINE u64 call_duration(u64 ids)
{
	u32 tid = (u32)ids;
	struct thread_calls *calls = bpf_map_lookup_elem(MAP(MAP_CALLS), &tid);

	return calls ? calls->duration : 0;
}

INLINE u64 saved_value(struct saved *saved, u32 place, u64 *fault)
{
	*fault |= saved->faults >> place & 1;
	return saved->numbers[place];
}

INLINE u32 may_print(void)
{
	u64 second = bpf_ktime_get_ns() / 1000000000ULL;
	struct rate *rate;
	u32 zero = 0;

	rate = bpf_map_lookup_elem(MAP(MAP_RATE), &zero);
	if (!rate)
		return 0;
	if (rate->second != second) {
		rate->second = second;
		rate->count = 0;
	}
	if (rate->count >= PRINTS_PER_SECOND) {
		lose(LOST_LIMITED);
		return 0;
	}
	__sync_fetch_and_add(&rate->count, 1);
	return 1;
}

/* struct printed: time, thread, process, question, function, faults (by value). */
INLINE u8 *new_print(struct pt_regs *ctx, u64 ids, u32 question, const u32 size)
{
	u8 *record = bpf_ringbuf_reserve(MAP(MAP_PRINTS), size, 0);

	if (!record) {
		lose(LOST_PRINTS);
		return 0;
	}
	*(u64 *)record = bpf_ktime_get_ns();
	*(u32 *)(record + 8) = (u32)ids;
	*(u32 *)(record + 12) = ids >> 32;
	*(u32 *)(record + 16) = question;
	*(u32 *)(record + 20) = (u32)cookie_of(ctx);
	*(u64 *)(record + 24) = 0;
	return record;
}

INLINE void clear_text(u8 *to)
{
	u64 *words = (u64 *)to;
	u32 i;

#pragma unroll
	for (i = 0; i < TEXT_BYTES / 8; i++)
		words[i] = 0;
}

INLINE void copy_text(u8 *to, struct saved *saved, u32 place, u64 *fault)
{
	u64 *words = (u64 *)to, *from = (u64 *)saved->texts[place];
	u32 i;

#pragma unroll
	for (i = 0; i < TEXT_BYTES / 8; i++)
		words[i] = from[i];
	*fault |= saved->faults >> place & 1;
}
