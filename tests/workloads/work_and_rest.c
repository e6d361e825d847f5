/* Two threads compute and sleep in turn, each phase in a function of its own.
 *
 *	work_and_rest [--wait] [--linger] [ROUNDS=100] [WORK_US=3000] [REST_US=17000]
 *
 * Truth: per thread ROUNDS times work, WORK_US of CPU time, and rest, one nanosleep() of REST_US by the C library. work
 * asks for its CPU time all the time, which is a system call that never waits. */
#include <pthread.h>
#include "burn.h"
#include "workload.h"

static long rounds, work_us, rest_us;

static NAMED void work(void)
{
	uint64_t until = cpu_ns() + (uint64_t)work_us * 1000;

	while (cpu_ns() < until)
		;
	KEEP_FRAME();
}

static NAMED void rest(struct wait_truth *w)
{
	struct timespec length = { 0, rest_us * 1000 };
	struct mark mark = wait_begins();

	nanosleep(&length, NULL);
	wait_ends(w, mark);
	KEEP_FRAME();
}

static void *turns(void *unused)
{
	struct wait_truth *w = new_wait("rest");
	struct thread_truth begin = thread_now();

	for (long i = 0; i < rounds; i++) {
		work();
		rest(w);
	}
	thread_done(&begin);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t threads[2];
	uint64_t begin;

	workload_begin(argc, argv);
	rounds = workload_number(0, 100, 100000);
	work_us = workload_number(1, 3000, 1000000);
	rest_us = workload_number(2, 17000, 999999);
	open_gate(NULL, NULL);
	begin = clock_ns(CLOCK_MONOTONIC);
	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, turns, NULL))
			die("pthread_create");
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return workload_end(begin);
}
