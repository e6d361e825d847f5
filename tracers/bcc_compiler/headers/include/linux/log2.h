/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define roundup_pow_of_two(n)                                                                                          \
	({                                                                                                             \
		unsigned long power = 1;                                                                               \
		while (power < (n))                                                                                    \
			power <<= 1;                                                                                   \
		power;                                                                                                 \
	})
