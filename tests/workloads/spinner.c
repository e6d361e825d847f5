/* Burns CPU and never waits.
 *
 *	spinner [--wait] [--linger] [MILLISECONDS=2000]
 *
 * Truth: all of the thread's time is spent in spin(), on the CPU or (when others want the core) runnable; it is never
 * blocked: no voluntary switch. */
#include "workload.h"

static volatile uint64_t sink;

/* The clock is read through the vDSO, without entering the kernel; seldom, for the vDSO hides spin() from frame pointers. */
static NAMED void spin(uint64_t until)
{
	while (clock_ns(CLOCK_MONOTONIC) < until)
		for (int i = 0; i < 50000; i++)
			sink += (uint64_t)i;
}

int main(int argc, char **argv)
{
	struct thread_truth begin;
	long ms;

	workload_begin(argc, argv);
	ms = workload_number(0, 2000, 60000);
	open_gate(NULL, NULL);
	begin = thread_now();
	spin(begin.wall_ns + (uint64_t)ms * 1000000u);
	KEEP_FRAME();
	thread_done(&begin);
	return workload_end(begin.wall_ns);
}
