/* Makes a pool of threads for each call, as libraries do that start their threads anew in every operator.
 *
 *	pool_per_call [--wait] [--linger] [CALLS=100] [THREADS=4]
 *
 * Truth: the main thread creates CALLS times THREADS threads called "pool-K" in call_with_pool(), and waits for their ends
 * there; each burns 0.2 ms of CPU in work_in_pool(). Between two calls the main thread sleeps 5 ms in between_calls(). */
#include <pthread.h>
#include <sys/syscall.h>
#include "workload.h"

#define WORK_NS 200000
#define BETWEEN_NS 5000000
#define MOST_THREADS 64

static volatile uint64_t sink;

static NAMED void *work_in_pool(void *argument)
{
	uint64_t until = clock_ns(CLOCK_THREAD_CPUTIME_ID) + WORK_NS;
	char name[16];

	snprintf(name, sizeof(name), "pool-%ld", (long)argument);
	prctl(PR_SET_NAME, name);
	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < until)
		for (int i = 0; i < 1000; i++)
			sink += (uint64_t)i;
	return NULL;
}

static NAMED void call_with_pool(long threads)
{
	pthread_t pool[MOST_THREADS];

	for (long i = 0; i < threads; i++)
		if ((errno = pthread_create(&pool[i], NULL, work_in_pool, (void *)i)))
			die("pthread_create");
	for (long i = 0; i < threads; i++)
		pthread_join(pool[i], NULL);
	KEEP_FRAME();
}

static NAMED void between_calls(struct wait_truth *w)
{
	measured_sleep(w, BETWEEN_NS);
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	struct thread_truth begin;
	struct wait_truth *w;
	long calls, threads;

	workload_begin(argc, argv);
	calls = workload_number(0, 100, 100000);
	threads = workload_number(1, 4, MOST_THREADS);
	w = new_wait("between_calls");
	open_gate(NULL, NULL);
	begin = thread_now();
	for (long i = 0; i < calls; i++) {
		call_with_pool(threads);
		between_calls(w);
	}
	thread_done(&begin);
	return workload_end(begin.wall_ns);
}
