/* Many threads compute on few cores.
 *
 *	crowd [--wait] [--linger] [MILLISECONDS=1000] [THREADS=8] [CORES=1]
 *
 * Truth: THREADS threads "compute-K" burn CPU in compute() for MILLISECONDS, and may use the last CORES cores of those that
 * the process was allowed: each runs for about CORES / THREADS of the time, waits for a core for the rest, and never blocks. */
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include "workload.h"

#define MOST_THREADS 256

static volatile uint64_t sink;
static uint64_t length;
static int tids[MOST_THREADS + 1];
static pthread_barrier_t everybody;

static NAMED void compute(uint64_t until)
{
	while (clock_ns(CLOCK_MONOTONIC) < until)
		for (int i = 0; i < 50000; i++)
			sink += (uint64_t)i;
	KEEP_FRAME();
}

static void *thread(void *argument)
{
	long i = (long)argument;
	struct thread_truth begin;
	char name[16];

	snprintf(name, sizeof(name), "compute-%ld", i);
	prctl(PR_SET_NAME, name);
	tids[i] = (int)syscall(SYS_gettid);
	pthread_barrier_wait(&everybody);
	await_start();
	begin = thread_now();
	compute(begin.wall_ns + length);
	thread_done(&begin);
	return NULL;
}

static void keep_last_cores(long cores)
{
	cpu_set_t allowed;
	long more;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		die("sched_getaffinity");
	more = CPU_COUNT(&allowed) - cores;
	for (int i = 0; i < CPU_SETSIZE && more > 0; i++)
		if (CPU_ISSET(i, &allowed)) {
			CPU_CLR(i, &allowed);
			more--;
		}
	if (sched_setaffinity(0, sizeof(allowed), &allowed) < 0)
		die("sched_setaffinity");
}

int main(int argc, char **argv)
{
	pthread_t threads[MOST_THREADS];
	int pids[2] = { getpid(), 0 };
	uint64_t begin;
	long count;

	workload_begin(argc, argv);
	length = (uint64_t)workload_number(0, 1000, 60000) * 1000000u;
	count = workload_number(1, 8, MOST_THREADS);
	keep_last_cores(workload_number(2, 1, CPU_SETSIZE));
	pthread_barrier_init(&everybody, NULL, (unsigned)count + 1);
	for (long i = 0; i < count; i++)
		if ((errno = pthread_create(&threads[i], NULL, thread, (void *)i)))
			die("pthread_create");
	pthread_barrier_wait(&everybody);
	open_gate(pids, tids);
	begin = clock_ns(CLOCK_MONOTONIC);
	for (long i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	return workload_end(begin);
}
