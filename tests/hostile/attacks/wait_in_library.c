/* A library whose only function waits. */
#include <time.h>

__attribute__((noinline)) void wait_in_library(void)
{
	struct timespec time = { .tv_nsec = 20000000 };

	nanosleep(&time, 0);
	__asm__ volatile("");
}
