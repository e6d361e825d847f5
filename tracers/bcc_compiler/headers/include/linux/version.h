/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Not that of the running kernel: it only chooses among bcc's own forms, and the oldest kernel for us has this one's. */
#define KERNEL_VERSION(a, b, c) (((a) << 16) + ((b) << 8) + (c))
#define LINUX_VERSION_CODE KERNEL_VERSION(5, 13, 0)
