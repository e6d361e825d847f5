/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What user space tells of a function with its probe: which one it is, and how its result and its arguments are to be
 * read. Mirrored in tracers/probe_targets/copies.py. */
#ifndef STALLSCOPE_CALL_COOKIE_H
#define STALLSCOPE_CALL_COOKIE_H

#include "kernel.h"

#define COOKIE_FUNCTION 0xffffffffULL
#define COOKIE_ERRORS (1ULL << 32) /* the result is an int that is 0 unless it failed */
#define COOKIE_COPY (1ULL << 33)
#define COOKIE_SIZE(cookie) ((cookie) >> 34 & 15)     /* of a copy: the argument, from 1 on, that has it; 0: none */
#define COOKIE_TIMES(cookie) ((cookie) >> 38 & 15)    /* … and one by which it is to be multiplied */
#define COOKIE_KIND(cookie) ((cookie) >> 42 & 15)     /* … and one that has the direction */
#define COOKIE_FORM(cookie) ((cookie) >> 46 & 3)      /* … or the first one leads to a struct: enum copy_form */
#define COOKIE_NARROW (1ULL << 48)		      /* the size has 32 bits */
#define COOKIE_DIRECTION(cookie) ((cookie) >> 49 & 7) /* by the function: enum copy_direction + 1; 0: not */

/* Without COOKIE_COPY: the call is kept with its arguments, and with the word to which one leads. */
#define COOKIE_ARGUMENTS (1ULL << 34)
#define COOKIE_MADE_SECOND (1ULL << 37)		  /* of functions with a probe at their entry alone, when they begin */
#define COOKIE_MADE(cookie) ((cookie) >> 38 & 15) /* the argument, from 1 on, when the function returns; 0: none */
#define COOKIE_REQUESTS(cookie) ((cookie) >> 42 & 3) /* … that leads to handles that are kept when it begins */
#define COOKIE_IF_CHANGED (1ULL << 44) /* … and the call is kept only if one of them is another one when it returns */

#define COOKIE_QUESTIONS(cookie) ((cookie) >> 52) /* which two of call_questions are the function's */

/* Registers at a uprobe: struct pt_regs of arch/x86/include/uapi/asm/ptrace.h. */
struct call_context {
	u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};

#endif
