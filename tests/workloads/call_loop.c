/* Calls a function in a loop, for a benchmark of what a traced call costs.
 *
 *	call_loop [CALLS=200000]
 *
 * It prints the mean time per call. The function begins with a push, as large functions do. */
#include "workload.h"

static volatile long sum;

__attribute__((noinline, visibility("default"))) NAMED int call_target(long number)
{
	sum += number;
	KEEP_FRAME();
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t begin;
	long calls;

	workload_begin(argc, argv);
	calls = workload_number(0, 200000, 100000000);
	open_gate(NULL, NULL);
	call_target(0);
	begin = clock_ns(CLOCK_MONOTONIC);
	for (long i = 0; i < calls; i++)
		call_target(i);
	printf("{\"call_ns\": %.1f}\n", (double)(clock_ns(CLOCK_MONOTONIC) - begin) / (double)calls);
	return workload_end(begin);
}
