/* Keeping a CPU busy for a known time. */
#ifndef STALLSCOPE_BURN_H
#define STALLSCOPE_BURN_H

#include <stdint.h>
#include <time.h>

/* What the thread has used of its CPU, in ns; the C library asks the kernel. */
static inline uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Burns `ns` of CPU in the function that it is written in. */
static inline __attribute__((always_inline)) void burn(uint64_t ns)
{
	uint64_t until = cpu_ns() + ns;

	while (cpu_ns() < until)
		for (int i = 0; i < 20000; i++)
			__asm__ volatile("" : : "r"(i) : "memory");
}

/* Of libshares.so. */
void library_spin(uint64_t ns);

#endif
