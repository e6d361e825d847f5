/* A main thread that waits for a worker, which waits for a lock that a third thread has.
 *
 *	waits_through [--wait] [--linger] [ROUNDS=10] [HOLD_MS=20]
 *
 * Truth: in each round "main" works for a tenth of HOLD_MS in prepare(); "holder" takes the lock, and keeps it in hold(),
 * on a core, for HOLD_MS; "worker" waits for it in take_lock(), and works for half of HOLD_MS in work(); main waits for
 * the worker in await_worker(). So what main's time goes to are these three, one after the other. */
#include <pthread.h>
#include <semaphore.h>
#include "burn.h"
#include "workload.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t wanted, held, requested, finished;
static long rounds, hold_ms;
static atomic_int tids[2];

static NAMED void prepare(void)
{
	burn(hold_ms * 100000);
	KEEP_FRAME();
}

static NAMED void hold(void)
{
	burn(hold_ms * 1000000);
	KEEP_FRAME();
}

static NAMED void work(void)
{
	burn(hold_ms * 500000);
	KEEP_FRAME();
}

static NAMED void take_lock(void)
{
	pthread_mutex_lock(&mutex);
	KEEP_FRAME();
}

static NAMED void await(sem_t *what)
{
	while (sem_wait(what))
		;
	KEEP_FRAME();
}

static NAMED void await_worker(void)
{
	await(&finished);
	KEEP_FRAME();
}

static void *holder(void *unused)
{
	struct thread_truth begin;

	prctl(PR_SET_NAME, "holder");
	atomic_store(&tids[0], (int)syscall6(SYS_gettid, 0, 0, 0, 0, 0, 0));
	await_start();
	begin = thread_now();
	for (long i = 0; i < rounds; i++) {
		await(&wanted);
		take_lock();
		sem_post(&held);
		hold();
		pthread_mutex_unlock(&mutex);
	}
	thread_done(&begin);
	return unused;
}

static void *worker(void *unused)
{
	struct thread_truth begin;

	prctl(PR_SET_NAME, "worker");
	atomic_store(&tids[1], (int)syscall6(SYS_gettid, 0, 0, 0, 0, 0, 0));
	await_start();
	begin = thread_now();
	for (long i = 0; i < rounds; i++) {
		await(&requested);
		take_lock();
		work();
		pthread_mutex_unlock(&mutex);
		sem_post(&finished);
	}
	thread_done(&begin);
	return unused;
}

int main(int argc, char **argv)
{
	int all[4] = { getpid() };
	struct thread_truth own;
	pthread_t threads[2];
	uint64_t begin;

	workload_begin(argc, argv);
	rounds = workload_number(0, 10, 100000);
	hold_ms = workload_number(1, 20, 1000);
	sem_init(&wanted, 0, 0);
	sem_init(&held, 0, 0);
	sem_init(&requested, 0, 0);
	sem_init(&finished, 0, 0);
	if (pthread_create(&threads[0], NULL, holder, NULL) || pthread_create(&threads[1], NULL, worker, NULL))
		die("pthread_create");
	for (int i = 0; i < 2; i++)
		while (!(all[i + 1] = atomic_load(&tids[i])))
			usleep(1000);
	open_gate(NULL, all);
	own = thread_now();
	begin = clock_ns(CLOCK_MONOTONIC);
	for (long i = 0; i < rounds; i++) {
		prepare();
		sem_post(&wanted);
		await(&held);
		sem_post(&requested);
		await_worker();
	}
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	thread_done(&own);
	return workload_end(begin);
}
