/* Calls a function in a loop, for a benchmark of what a traced call costs.
 *
 *	call_loop [CALLS=200000]
 *
 * It prints the time per call, in the fastest of rounds that are short enough to be undisturbed. The function begins with
 * a push, as large functions do. */
#include "workload.h"

#define ROUND 500

static volatile long sum;

__attribute__((noinline, visibility("default"))) NAMED int call_target(long number)
{
	sum += number;
	KEEP_FRAME();
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t begin, least = UINT64_MAX;
	long calls;

	workload_begin(argc, argv);
	calls = workload_number(0, 200000, 100000000);
	open_gate(NULL, NULL);
	call_target(0);
	begin = clock_ns(CLOCK_MONOTONIC);
	for (long i = 0; i < calls; i += ROUND) {
		uint64_t since = clock_ns(CLOCK_MONOTONIC), ns;
		long number = calls - i < ROUND ? calls - i : ROUND;

		for (long each = 0; each < number; each++)
			call_target(each);
		ns = clock_ns(CLOCK_MONOTONIC) - since;
		if (number == ROUND && ns < least)
			least = ns;
	}
	printf("{\"call_ns\": %.1f}\n", (double)least / ROUND);
	return workload_end(begin);
}
