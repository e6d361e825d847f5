/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Registers at a uprobe: struct pt_regs of arch/x86/include/uapi/asm/ptrace.h, with the kernel's names. */
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};
