/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whether a thread that is switched out waits in a futex call, and in which one: by its saved registers. So neither the
 * calls that do not wait nor any other system call pays for it. */
#ifndef STALLSCOPE_FUTEX_BPF_H
#define STALLSCOPE_FUTEX_BPF_H

#include "measures.bpf.h"
#include "thread.bpf.h"
#include "unwind.bpf.h"

/* include/uapi/asm/unistd_64.h and unistd_32.h. */
#define NR_FUTEX 202
#define NR_FUTEX_WAITV 449
#define NR_FUTEX_WAIT 455
#define NR32_FUTEX 240

#define GIL_TRIES 6 /* to read what another thread does, which may change it meanwhile */

struct futex_call {
	u64 number; /* of the system call, as in 64-bit programs */
	u64 first;  /* its arguments */
	u64 second;
	u64 third;
	bool narrow; /* a 32-bit program's */
};

static __always_inline void gil_wait_begins(struct thread *t, const struct futex_call *call)
{
	int waits = gil_waits(t, call);
	u32 i;

	if (waits == GIL_OTHER)
		return;
	for (i = 0; i < GIL_TRIES && waits == GIL_HELD; i++)
		if (!gil_reads(t))
			break;
	gil_begins(t);
}

static __always_inline void waits_on_futex(struct task_struct *task, bool trusted, struct thread *t)
{
	struct futex_call call = {};
	struct pt_regs *regs;

	if (TASK_FIELD(trusted, task, flags) & PF_KTHREAD)
		return;
	if (task_regs)
		regs = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
	else
		regs = BPF_CORE_READ(task, stack) + THREAD_SIZE - bpf_core_type_size(struct pt_regs);
	call.number = task_regs ? regs->orig_ax : BPF_CORE_READ(regs, orig_ax);
	if (call.number != NR_FUTEX && call.number != NR_FUTEX_WAITV && call.number != NR_FUTEX_WAIT &&
	    call.number != NR32_FUTEX)
		return;
	call.narrow = (task_regs ? regs->cs : BPF_CORE_READ(regs, cs)) == USER32_CS;
	if (call.narrow != (call.number == NR32_FUTEX))
		return;
	if (call.narrow) {
		call.number = NR_FUTEX;
		call.first = (u32)(task_regs ? regs->bx : BPF_CORE_READ(regs, bx));
		call.second = (u32)(task_regs ? regs->cx : BPF_CORE_READ(regs, cx));
		call.third = (u32)(task_regs ? regs->dx : BPF_CORE_READ(regs, dx));
	} else {
		call.first = task_regs ? regs->di : BPF_CORE_READ(regs, di);
		call.second = task_regs ? regs->si : BPF_CORE_READ(regs, si);
		call.third = task_regs ? regs->dx : BPF_CORE_READ(regs, dx);
	}
	if (measure_locks && !is_shed(SHED_LOCKS))
		locks_waits(t, &call);
	if (measure_gil && !call.narrow)
		gil_wait_begins(t, &call);
}

#endif
