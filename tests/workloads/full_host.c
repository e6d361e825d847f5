/* A host full of processes: each has threads that wait for each other, for a lock, for time, in poll and for a pipe.
 *
 *	full_host [--wait] [--linger] [SECONDS=20] [PROCESSES=1000] [THREADS=10] [PERIOD_MS=200]
 *
 * Truth: PROCESSES processes "rank-K" of THREADS threads each (the main thread included), which exist soon after its
 * start until SECONDS later; every PERIOD_MS each thread works a little and waits in one of wait_turn, hold_lock,
 * wait_time, wait_event and read_item, in a call path of its own depth. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include "workload.h"

#define MOST_PROCESSES 4096
#define MOST_THREADS 64
#define KINDS 5
#define DEEPEST 8

static long processes, threads, period_ns;
static int pids[MOST_PROCESSES + 1];
static volatile uint64_t sink;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, turn_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turns = PTHREAD_COND_INITIALIZER;
static int items[2];
static _Atomic bool *ends; /* shared by all processes */

static NAMED void wait_time(void)
{
	struct timespec length = { 0, period_ns };

	nanosleep(&length, NULL);
	KEEP_FRAME();
}

static NAMED void wait_turn(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += period_ns;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&turn_lock);
	pthread_cond_timedwait(&turns, &turn_lock, &until);
	pthread_mutex_unlock(&turn_lock);
	KEEP_FRAME();
}

static NAMED void hold_lock(void)
{
	struct timespec length = { 0, period_ns / 4 };

	pthread_mutex_lock(&lock);
	nanosleep(&length, NULL);
	pthread_mutex_unlock(&lock);
	pthread_cond_signal(&turns);
	wait_time();
	KEEP_FRAME();
}

static NAMED void wait_event(void)
{
	char item = 1;

	poll(NULL, 0, (int)(period_ns / 1000000));
	if (write(items[1], &item, 1) < 0 && errno != EAGAIN)
		die("write");
	KEEP_FRAME();
}

static NAMED void read_item(void)
{
	struct pollfd item = { items[0], POLLIN, 0 };
	char byte;

	if (poll(&item, 1, (int)(period_ns / 1000000)) > 0 && read(items[0], &byte, 1) < 0 && errno != EAGAIN)
		die("read");
	KEEP_FRAME();
}

static void (*const WAITS[KINDS])(void) = { wait_time, wait_turn, hold_lock, wait_event, read_item };

static NAMED void deeper(long depth, long kind)
{
	if (depth > 0)
		deeper(depth - 1, kind);
	else
		WAITS[kind]();
	KEEP_FRAME();
}

static NAMED void work(void)
{
	for (int i = 0; i < 5000; i++)
		sink += (uint64_t)i;
	KEEP_FRAME();
}

static void *thread(void *argument)
{
	long i = (long)argument;
	char name[16];

	snprintf(name, sizeof(name), "part-%ld", i);
	prctl(PR_SET_NAME, name);
	for (long round = 0; !*ends; round++) {
		work();
		deeper((i + round) % DEEPEST, i % KINDS);
	}
	return NULL;
}

static void process(long k)
{
	pthread_t others[MOST_THREADS];
	pthread_attr_t small;
	char name[16];

	workload_child();
	snprintf(name, sizeof(name), "rank-%ld", k);
	prctl(PR_SET_NAME, name);
	if (pipe2(items, O_NONBLOCK | O_CLOEXEC) < 0)
		die("pipe2");
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	for (long i = 1; i < threads; i++)
		if ((errno = pthread_create(&others[i], &small, thread, (void *)i)))
			die("pthread_create");
	thread((void *)0);
	for (long i = 1; i < threads; i++)
		pthread_join(others[i], NULL);
	_exit(0);
}

int main(int argc, char **argv)
{
	struct timespec length = { 0, 0 };
	int tids[1] = { 0 };
	uint64_t begin;

	workload_begin(argc, argv);
	length.tv_sec = workload_number(0, 20, 100);
	processes = workload_number(1, 1000, MOST_PROCESSES);
	threads = workload_number(2, 10, MOST_THREADS);
	period_ns = workload_number(3, 200, 900) * 1000000;
	ends = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (ends == MAP_FAILED)
		die("mmap");
	for (long k = 0; k < processes; k++) {
		pids[k] = fork();
		if (pids[k] < 0)
			die("fork");
		if (pids[k] == 0)
			process(k);
	}
	open_gate(pids, tids);
	begin = clock_ns(CLOCK_MONOTONIC);
	nanosleep(&length, NULL);
	*ends = true;
	for (long k = 0; k < processes; k++)
		waitpid(pids[k], NULL, 0);
	return workload_end(begin);
}
