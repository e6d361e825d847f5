/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Programs at uprobes, whose memory has to be their own.
 *
 * Kernels since 6.13 (e00931c02568, "bpf: Enable private stack for eligible subprogs") give the programs of a uprobe one
 * stack for each CPU, as if a program could not come to its uprobe on the same CPU before another run of it is done. With
 * preemption on, it can: the variables of one thread's run are then overwritten by those of another's. A program with a
 * tail call, even one that is never made, gets no such stack. */
#ifndef STALLSCOPE_OWN_STACK_BPF_H
#define STALLSCOPE_OWN_STACK_BPF_H

#include "maps.bpf.h"

static const volatile bool makes_tail_calls; /* never true */

/* Empty. One for each kind of programs, named as they are (tracers/engines/ebpf/further_programs.py): since 6.18
 * (4540aed51b12, "bpf: Enforce expected_attach_type for tailcall compatibility"), all programs that use one are to be of
 * one kind. */
struct no_programs {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
};

/* First statement of a program. */
static __always_inline void on_own_stack(void *ctx, struct no_programs *none)
{
	if (makes_tail_calls)
		bpf_tail_call(ctx, none, 0);
}

#endif
