/* Calls an ioctl that does next to nothing, and another system call, in loops: for tests/bench/bench_ioctl.py.
 *
 *	ioctl_loop
 *
 * Prints the ns per call of both, each the least of many rounds. */
#include <fcntl.h>
#include <sys/ioctl.h>
#include "workload.h"

#define ROUNDS 400
#define CALLS 500

static uint64_t round_of(long number, long a, long b, long c)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC);

	for (int i = 0; i < CALLS; i++)
		syscall6(number, a, b, c, 0, 0, 0);
	return clock_ns(CLOCK_MONOTONIC) - begin;
}

int main(void)
{
	uint64_t ioctls = UINT64_MAX, others = UINT64_MAX, ns;
	int terminal = open("/dev/ptmx", O_RDWR | O_CLOEXEC | O_NOCTTY);
	struct winsize size;

	alarm(60);
	if (terminal < 0)
		die("/dev/ptmx");
	for (int i = 0; i < ROUNDS; i++) {
		ns = round_of(SYS_ioctl, terminal, TIOCGWINSZ, (long)&size);
		ioctls = ns < ioctls ? ns : ioctls;
		ns = round_of(SYS_getppid, 0, 0, 0);
		others = ns < others ? ns : others;
	}
	printf("{\"ioctl_ns\": %.1f, \"other_ns\": %.1f}\n", (double)ioctls / CALLS, (double)others / CALLS);
	return 0;
}
