/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls of a Python function: a hardware breakpoint is on the count of references of its code object. A frame has one
 * from its first moment to its last one, so that the count is written when a call begins and when it ends. Other uses
 * of the code object write it, too: what the thread is in tells them apart, in user space.
 *
 * The kernel runs the program in the trap that follows the write, with interrupts off: as the scheduler's programs, which
 * come from the kernel, cannot be in the middle of something then, it uses their memory. */
#include "thread.bpf.h"
#include "user_stack.bpf.h"

char LICENSE[] SEC("license") = "GPL";

#define REGISTERS 15
#define CODE_FREE_FRAME 128  /* co_zombieframe of PyCodeObject (up to 3.10: Include/cpython/code.h) */
#define CODE_STACK_SIZE (-4) /* co_stacksize (3.11), before co_firstlineno */
#define CODE_LOCALS 4	     /* co_nlocalsplus, behind it */
#define FRAME_WORDS 9	     /* of _PyInterpreterFrame without its locals (3.11: Include/internal/pycore_frame.h) */
#define CODE_FRAME_SIZE 8    /* co_framesize, in words (from 3.12 on) */
#define CODE_UNITS 16	     /* ob_size of PyVarObject (from 3.11 on): units of instructions */
#define CODE_UNIT 2

/* struct bpf_perf_event_data of linux/bpf_perf_event.h. */
struct hit_context {
	u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
	u64 period;
	u64 address;
};

struct hit_registers {
	u64 of[REGISTERS];
};

enum step_hit_flag {
	HIT_INNERMOST = 1, /* the thread is in the function itself */
	HIT_UNREADABLE = 2,
	HIT_FRAME = 4, /* a frame of the function is there that has just left its thread's list: see has_frame() */
	HIT_FREE = 8,  /* up to 3.10: the code object keeps a frame for the next call */
};

/* By address of a code object that is watched: where a thread's state has the end of its frames' memory (datastack_top of
 * PyThreadState; 0 up to 3.10). */
struct watched_codes {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u64);
	__type(value, u64);
};
struct watched_codes watched_codes SEC(".maps");

/* A write. Mirrored in tracers/engines/ebpf/measures/step_hits.py. */
struct step_hit {
	u32 type; /* RECORD_STEP */
	u32 references;
	u64 time;
	u64 code;
	u64 caller;	 /* code object of the innermost other function */
	u64 callers;	 /* hash of the functions that lead to it, with their instructions */
	u32 instruction; /* of the caller: its byte in the code */
	u32 tid;
	u32 tgid;
	u32 life;
	u8 inside; /* how many of the thread's functions are this one */
	u8 flags;
	u8 pad[6];
};

/* Writes that found no room in the ring buffer. */
struct step_losses {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
};
struct step_losses lost_step_hits SEC(".maps");

/* What the thread is in: the Python functions of the record. */
__weak int describe_hit(struct stack_record *record, struct step_hit *hit, u32 words)
{
	u64 word, second;
	u32 i, at, found = 0;

	if (!record || !hit)
		return 0;
	barrier_var(words);
	for (i = 0; i < MAX_PYTHON + 1; i++) {
		at = 1 + 2 * i;
		if (at >= words)
			break;
		word = record->frames[at & STACK_MASK];
		if ((word & ~PYTHON_ADDRESS) != PYTHON_CODE || at + 1 >= words) {
			hit->flags |= HIT_UNREADABLE;
			break;
		}
		second = record->frames[(at + 1) & STACK_MASK];
		if ((word & PYTHON_ADDRESS) == hit->code) {
			hit->inside += hit->inside < 255;
			if (!i) {
				hit->flags |= HIT_INNERMOST;
				continue;
			}
		}
		if (!found++) {
			hit->caller = word & PYTHON_ADDRESS;
			hit->instruction = second >> 1 & 0x7fffffff;
		} else {
			hit->callers = python_mix(python_mix(hit->callers, word), second & ~1ULL);
		}
	}
	return 0;
}

static __always_inline u64 user_word(u64 address)
{
	u64 word = 0;

	bpf_probe_read_user(&word, sizeof(word), (void *)address);
	return word;
}

/* Up to 3.10, frames are objects anywhere. The interpreter is about to free this one, and has its address in a
 * register. */
__weak int frame_in_registers(const struct hit_registers *registers, const struct python_space *space, u64 code,
			      u64 innermost)
{
	u32 i;

	if (!registers || !space)
		return 0;
	for (i = 0; i < REGISTERS; i++)
		if (user_word(registers->of[i] + space->frame_code) == code &&
		    user_word(registers->of[i] + space->frame_back) == innermost)
			return 1;
	return 0;
}

/* Whether the frame's instruction is one of the code object. An older frame's remains, with the same caller, may lie in
 * the part of the caller's frame that is not used. */
static __always_inline bool runs_in(u64 frame, const struct python_space *space, u64 code)
{
	u64 instructions = code + space->code_first;
	u64 at = user_word(frame + space->frame_instruction) - instructions;

	/* 3.11 and 3.12 have the instruction before the next one there, so that a frame may be at none yet. */
	return at + CODE_UNIT <= (u32)user_word(code + CODE_UNITS) * CODE_UNIT;
}

/* Whether the function's frame has just left its thread's list, and is still in memory. From 3.11 on, it lies at the end
 * of the thread's frames, and leads to the one that is the innermost now. */
__weak int has_frame(const struct hit_registers *registers, const struct python_space *space, u64 state, u64 code)
{
	u64 *top, innermost, frame, words;
	u32 line;

	if (!registers || !space)
		return 0;
	innermost = user_word(state + space->thread_frame);
	if (space->frame_in != NO_STEP)
		innermost = user_word(innermost + space->frame_in);
	if (!innermost)
		return 0;
	if (space->entry == ENTRY_ALWAYS)
		return frame_in_registers(registers, space, code, innermost);
	top = bpf_map_lookup_elem(&watched_codes, &code);
	if (!top || !*top)
		return 0;
	line = space->code_line;
	if (space->entry == ENTRY_FLAG)
		words = FRAME_WORDS + (u32)user_word(code + line + CODE_STACK_SIZE) +
			(u32)user_word(code + line + CODE_LOCALS);
	else
		words = (u32)user_word(code + line + CODE_FRAME_SIZE);
	frame = user_word(state + *top) - words * sizeof(u64);
	return user_word(frame + space->frame_back) == innermost && runs_in(frame, space, code);
}

static __always_inline struct hit_registers registers_of(const struct hit_context *ctx)
{
	return (struct hit_registers){ { ctx->bx, ctx->bp, ctx->r12, ctx->r13, ctx->r14, ctx->r15, ctx->di, ctx->si,
					 ctx->ax, ctx->cx, ctx->dx, ctx->r8, ctx->r9, ctx->r10, ctx->r11 } };
}

static __always_inline int on_step_hit(struct hit_context *ctx, struct task_struct *task, bool trusted)
{
	struct python_thread *known;
	struct stack_record *record;
	struct unwind_walk *walk;
	struct hit_registers registers;
	struct step_hit hit = {};
	u32 slot = CONTEXT_SCHED, words;
	struct thread *t;
	u64 *lost;

	hit.time = bpf_ktime_get_ns();
	if (!running())
		return 0;
	t = find_thread(task, trusted);
	if (!t || t->phase == PHASE_GONE)
		return 0;
	record = bpf_map_lookup_elem(&stack_scratch, &slot);
	walk = bpf_map_lookup_elem(&walk_scratch, &slot);
	if (!record || !walk)
		return 0;
	hit.type = RECORD_STEP;
	hit.code = ctx->address;
	hit.tid = t->key.tid;
	hit.tgid = t->key.tgid;
	hit.life = t->key.life;
	bpf_probe_read_user(&hit.references, sizeof(hit.references), (void *)hit.code);
	begin_walk(walk, record, ctx->ip, ctx->sp, ctx->bp, hit.tgid, hit.tid, false);
	walk->caches = CONTEXT_SCHED;
	walk->frames = 0;
	words = python_current(walk, record);
	registers = registers_of(ctx);
	known = bpf_map_lookup_elem(&python_threads, &hit.tid);
	if (!known || !known->state)
		hit.flags |= HIT_UNREADABLE;
	else if (has_frame(&registers, &walk->python.space, known->state, hit.code))
		hit.flags |= HIT_FRAME;
	if (walk->python.space.entry == ENTRY_ALWAYS && user_word(hit.code + CODE_FREE_FRAME))
		hit.flags |= HIT_FREE;
	describe_hit(record, &hit, words);
	if (bpf_ringbuf_output(&records, &hit, sizeof(hit), BPF_RB_NO_WAKEUP)) {
		slot = 0;
		lost = bpf_map_lookup_elem(&lost_step_hits, &slot);
		if (lost)
			++*lost;
	}
	return 0;
}

SEC("perf_event")
int python_steps_hit(struct hit_context *ctx)
{
	return on_step_hit(ctx, bpf_get_current_task_btf(), true);
}

SEC("perf_event")
int python_steps_hit_raw(struct hit_context *ctx)
{
	return on_step_hit(ctx, (void *)bpf_get_current_task(), false);
}
