/* Two pools of threads in one process, created in two functions, and fed by two others.
 *
 *	two_pools [--wait] [--linger] [MILLISECONDS=1000] [READERS=3] [WRITERS=2]
 *
 * Truth: after the gate is open, start_readers() creates READERS threads and start_writers() WRITERS threads, all of them
 * called "worker-K". Each waits in a semaphore of its pool, and then burns 0.1 ms of CPU in read_block() or write_block().
 * For MILLISECONDS the main thread gives each pool as much work as it has threads, in feed_readers() and feed_writers(),
 * and sleeps 2 ms. The last work that they are given is to end. */
#include <pthread.h>
#include <semaphore.h>
#include "workload.h"

#define WORK_NS 100000
#define BETWEEN_NS 2000000
#define MOST_THREADS 64

struct pool {
	long threads;
	void (*work)(void);
	pthread_t made[MOST_THREADS];
	sem_t tasks;
};

static volatile uint64_t sink;
static volatile bool over;

static void burn_some(void)
{
	uint64_t until = clock_ns(CLOCK_THREAD_CPUTIME_ID) + WORK_NS;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < until)
		for (int i = 0; i < 1000; i++)
			sink += (uint64_t)i;
}

static NAMED void read_block(void)
{
	burn_some();
	KEEP_FRAME();
}

static NAMED void write_block(void)
{
	burn_some();
	KEEP_FRAME();
}

static NAMED void *run_tasks(void *argument)
{
	struct pool *pool = argument;

	for (;;) {
		while (sem_wait(&pool->tasks) < 0)
			if (errno != EINTR)
				die("sem_wait");
		if (over)
			break;
		pool->work();
	}
	return NULL;
}

static void start_pool(struct pool *pool)
{
	char name[16];

	if (sem_init(&pool->tasks, 0, 0) < 0)
		die("sem_init");
	for (long i = 0; i < pool->threads; i++) {
		if ((errno = pthread_create(&pool->made[i], NULL, run_tasks, pool)))
			die("pthread_create");
		snprintf(name, sizeof(name), "worker-%ld", i);
		pthread_setname_np(pool->made[i], name);
	}
}

static NAMED void start_readers(struct pool *pool)
{
	start_pool(pool);
	KEEP_FRAME();
}

static NAMED void start_writers(struct pool *pool)
{
	start_pool(pool);
	KEEP_FRAME();
}

static void give(struct pool *pool)
{
	for (long i = 0; i < pool->threads; i++)
		sem_post(&pool->tasks);
}

static NAMED void feed_readers(struct pool *pool)
{
	give(pool);
	KEEP_FRAME();
}

static NAMED void feed_writers(struct pool *pool)
{
	give(pool);
	KEEP_FRAME();
}

static void join_pool(struct pool *pool)
{
	for (long i = 0; i < pool->threads; i++)
		pthread_join(pool->made[i], NULL);
}

int main(int argc, char **argv)
{
	static struct pool readers = { .work = read_block }, writers = { .work = write_block };
	uint64_t begin, length;
	struct wait_truth *w;

	workload_begin(argc, argv);
	length = (uint64_t)workload_number(0, 1000, 60000) * 1000000u;
	readers.threads = workload_number(1, 3, MOST_THREADS);
	writers.threads = workload_number(2, 2, MOST_THREADS);
	w = new_wait("main");
	open_gate(NULL, NULL);
	begin = clock_ns(CLOCK_MONOTONIC);
	start_readers(&readers);
	start_writers(&writers);
	while (clock_ns(CLOCK_MONOTONIC) < begin + length) {
		feed_readers(&readers);
		feed_writers(&writers);
		measured_sleep(w, BETWEEN_NS);
	}
	over = true;
	feed_readers(&readers);
	feed_writers(&writers);
	join_pool(&readers);
	join_pool(&writers);
	return workload_end(begin);
}
