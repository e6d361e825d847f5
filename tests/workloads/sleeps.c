/* Sleeps of known length in functions that say so.
 *
 *	sleeps [--wait] [--linger] [ROUNDS=20] [FACTOR=1]
 *
 * Truth: per round four times sleep_1ms, twice sleep_10ms, once sleep_25ms; each call is one nanosleep() and one voluntary
 * switch. main → sleep_N. With FACTOR each sleeps FACTOR times as long as its name says. */
#include "workload.h"

static uint64_t factor;

static NAMED void sleep_1ms(struct wait_truth *w)
{
	measured_sleep(w, factor * 1000000);
	KEEP_FRAME();
}

static NAMED void sleep_10ms(struct wait_truth *w)
{
	measured_sleep(w, factor * 10000000);
	KEEP_FRAME();
}

static NAMED void sleep_25ms(struct wait_truth *w)
{
	measured_sleep(w, factor * 25000000);
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	struct wait_truth *w1, *w10, *w25;
	struct thread_truth begin;
	long rounds;

	workload_begin(argc, argv);
	rounds = workload_number(0, 20, 1000);
	factor = (uint64_t)workload_number(1, 1, 100);
	w1 = new_wait("sleep_1ms");
	w10 = new_wait("sleep_10ms");
	w25 = new_wait("sleep_25ms");
	open_gate(NULL, NULL);
	begin = thread_now();
	for (long i = 0; i < rounds; i++) {
		for (int j = 0; j < 4; j++)
			sleep_1ms(w1);
		for (int j = 0; j < 2; j++)
			sleep_10ms(w10);
		sleep_25ms(w25);
	}
	thread_done(&begin);
	return workload_end(begin.wall_ns);
}
