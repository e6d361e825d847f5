/* More stacks than any table holds.
 *
 *	many_stacks [--wait] [--linger] [THREADS=4] [CALLS=10000] [WAYS=16777216] [MICROSECONDS=20]
 *
 * Truth: each thread waits CALLS times in leaf() for MICROSECONDS, below 24 frames of left() and right() in an
 * order that differs from call to call and from thread to thread, until WAYS of them have been taken; then they repeat. One record per thread. */
#include <pthread.h>
#include "workload.h"

#define DEPTH 24
#define MOST 64

static long calls, ways, ns;

static NAMED long leaf(struct wait_truth *w)
{
	measured_sleep(w, ns);
	KEEP_FRAME();
	return 1;
}

static NAMED long left(struct wait_truth *w, unsigned int turns, int depth);

static NAMED long right(struct wait_truth *w, unsigned int turns, int depth)
{
	long result = !depth ? leaf(w) : turns & 1 ? left(w, turns >> 1, depth - 1) : right(w, turns >> 1, depth - 1);

	KEEP_FRAME();
	return result + 1;
}

static NAMED long left(struct wait_truth *w, unsigned int turns, int depth)
{
	long result = !depth ? leaf(w) : turns & 1 ? right(w, turns >> 1, depth - 1) : left(w, turns >> 1, depth - 1);

	KEEP_FRAME();
	return result - 1;
}

static void *work(void *number)
{
	struct wait_truth *w = new_wait("leaf");
	struct thread_truth begin;
	long first = (long)number * (1 << DEPTH) / MOST;
	char name[16];

	snprintf(name, sizeof(name), "ways-%ld", (long)number);
	prctl(PR_SET_NAME, name);
	prctl(PR_SET_TIMERSLACK, 1);
	warm_up(w);
	await_start();
	begin = thread_now();
	for (long i = 0; i < calls; i++)
		left(w, (unsigned int)(i % ways + first) * 2654435761u & ((1 << DEPTH) - 1), DEPTH);
	thread_done(&begin);
	return NULL;
}

int main(int argc, char **argv)
{
	struct thread_truth begin;
	pthread_t threads[MOST];
	long count;

	workload_begin(argc, argv);
	count = workload_number(0, 4, MOST);
	calls = workload_number(1, 10000, 100000000);
	ways = workload_number(2, 1 << DEPTH, 1 << DEPTH);
	ns = workload_number(3, 20, 1000000) * 1000;
	for (long i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)i))
			die("pthread_create");
	open_gate(NULL, NULL);
	begin = thread_now();
	for (long i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	return workload_end(begin.wall_ns);
}
