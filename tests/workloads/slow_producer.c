/* A thread makes items slowly, another one takes them.
 *
 *	slow_producer [--wait] [--linger] [ITEMS=50] [US=4000] [WORK_US=0]
 *
 * Truth: thread "consumer" waits in take_item() for each item, and is woken by thread "producer" in give_item(). What it
 * waits, the producer sleeps in make_item(), US at a time, and a timer wakes that one. With WORK_US the consumer computes
 * for so much CPU time in use_item() after each, and `times` has when it got them (CLOCK_MONOTONIC). */
#include <pthread.h>
#include "workload.h"

#define MOST_TIMES 10000

static long items, us, work_us;
static uint64_t times[MOST_TIMES];
static atomic_int made; /* items that are there */
static atomic_int tids[2];

static NAMED void take_item(struct wait_truth *w)
{
	while (!atomic_load(&made))
		measured(w, SYS_futex, (long)&made, FUTEX_WAIT_PRIVATE, 0, 0, 0, 0);
	atomic_fetch_sub(&made, 1);
	KEEP_FRAME();
}

static NAMED void use_item(void)
{
	uint64_t until = clock_ns(CLOCK_THREAD_CPUTIME_ID) + (uint64_t)work_us * 1000;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < until)
		KEEP_FRAME();
	KEEP_FRAME();
}

static NAMED void make_item(struct wait_truth *w)
{
	measured_sleep(w, us * 1000);
	KEEP_FRAME();
}

static NAMED void give_item(void)
{
	atomic_fetch_add(&made, 1);
	syscall6(SYS_futex, (long)&made, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
	KEEP_FRAME();
}

static void *consumer(void *unused)
{
	struct wait_truth *w = new_wait("take_item");
	struct thread_truth begin;

	prctl(PR_SET_NAME, "consumer");
	atomic_store(&tids[0], w->tid);
	await_start();
	begin = thread_now();
	for (long i = 0; i < items; i++) {
		take_item(w);
		if (work_us) {
			times[i] = clock_ns(CLOCK_MONOTONIC);
			use_item();
		}
	}
	thread_done(&begin);
	return unused;
}

static void *producer(void *unused)
{
	struct wait_truth *w = new_wait("make_item");
	struct thread_truth begin;

	prctl(PR_SET_NAME, "producer");
	atomic_store(&tids[1], w->tid);
	await_start();
	begin = thread_now();
	for (long i = 0; i < items; i++) {
		make_item(w);
		give_item();
	}
	thread_done(&begin);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t threads[2];
	int all[4] = { getpid() };
	uint64_t begin;

	workload_begin(argc, argv);
	items = workload_number(0, 50, 1000000);
	us = workload_number(1, 4000, 1000000);
	work_us = workload_number(2, 0, 1000000);
	if (work_us && items > MOST_TIMES)
		items = MOST_TIMES;
	if (pthread_create(&threads[0], NULL, consumer, NULL) || pthread_create(&threads[1], NULL, producer, NULL))
		die("pthread_create");
	for (int i = 0; i < 2; i++)
		while (!(all[i + 1] = atomic_load(&tids[i])))
			usleep(1000);
	open_gate(NULL, all);
	begin = clock_ns(CLOCK_MONOTONIC);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	if (work_us)
		workload_times(times, items);
	return workload_end(begin);
}
