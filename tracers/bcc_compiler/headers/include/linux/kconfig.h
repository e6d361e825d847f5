/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define CONFIG_BPF_SYSCALL 1
