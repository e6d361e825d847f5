/* Threads that wait for a mutex, first one at a time, then all at the same time.
 *
 *	lock_queue [--wait] [--linger] [WAITERS=4] [ROUNDS=20] [HOLD_US=3000]
 *
 * Truth: in ROUNDS rounds, "waiter-1" alone waits in take_alone() for "holder", which gives the mutex back only after it
 * has seen the waiter asleep in a futex call. In as many more rounds all WAITERS wait in take_with_others(): they, too, are
 * seen asleep first. Whoever has the mutex keeps it for HOLD_US, asleep: so no other wait is for a lock. */
#include <pthread.h>
#include "workload.h"

#define MAX_WAITERS 32

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long rounds, waiters, hold_us;
static atomic_int tids[MAX_WAITERS + 1];
static atomic_long wanted[MAX_WAITERS + 1], done[MAX_WAITERS + 1];

static void take(struct wait_truth *w)
{
	long before = voluntary_switches();
	uint64_t begin = clock_ns(CLOCK_MONOTONIC);

	if (pthread_mutex_lock(&mutex))
		die("pthread_mutex_lock");
	w->ns += clock_ns(CLOCK_MONOTONIC) - begin;
	w->blocks += voluntary_switches() - before;
	w->calls++;
}

static NAMED void take_alone(struct wait_truth *w)
{
	take(w);
	KEEP_FRAME();
}

static NAMED void take_with_others(struct wait_truth *w)
{
	take(w);
	KEEP_FRAME();
}

static void give(struct wait_truth *holds)
{
	measured_sleep(holds, hold_us * 1000);
	pthread_mutex_unlock(&mutex);
}

/* Whether a thread is asleep in a futex call: /proc/PID/task/TID/syscall begins with the call's number. */
static bool waits_on_futex(int tid)
{
	char path[64];
	long number = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", tid);
	file = fopen(path, "r");
	if (!file)
		die(path);
	if (fscanf(file, "%ld", &number) != 1)
		number = -1;
	fclose(file);
	return number == SYS_futex;
}

static void *waiter(void *of)
{
	struct wait_truth *alone = new_wait("take_alone"), *others = new_wait("take_with_others"),
			  *holds = new_wait("hold");
	struct thread_truth begin;
	long number = (long)of;
	char name[16];

	snprintf(name, sizeof(name), "waiter-%ld", number);
	prctl(PR_SET_NAME, name);
	atomic_store(&tids[number], alone->tid);
	await_start();
	begin = thread_now();
	for (long i = number == 1 ? 1 : rounds + 1; i <= 2 * rounds; i++) {
		while (atomic_load(&wanted[number]) < i)
			usleep(200);
		if (i > rounds)
			take_with_others(others);
		else
			take_alone(alone);
		give(holds);
		atomic_store(&done[number], i);
	}
	thread_done(&begin);
	return NULL;
}

static void *holder(void *unused)
{
	struct wait_truth *holds = new_wait("hold");
	struct thread_truth begin;

	prctl(PR_SET_NAME, "holder");
	atomic_store(&tids[0], holds->tid);
	await_start();
	begin = thread_now();
	for (long i = 1; i <= 2 * rounds; i++) {
		long last = i > rounds ? waiters : 1;

		pthread_mutex_lock(&mutex);
		for (long k = 1; k <= last; k++)
			atomic_store(&wanted[k], i);
		for (long k = 1; k <= last; k++)
			while (!waits_on_futex(atomic_load(&tids[k])))
				usleep(200);
		give(holds);
		for (long k = 1; k <= last; k++)
			while (atomic_load(&done[k]) < i)
				usleep(200);
	}
	thread_done(&begin);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t threads[MAX_WAITERS + 1];
	int all[MAX_WAITERS + 3] = { getpid() };
	uint64_t begin;

	workload_begin(argc, argv);
	waiters = workload_number(0, 4, MAX_WAITERS);
	rounds = workload_number(1, 20, 10000);
	hold_us = workload_number(2, 3000, 1000000);
	for (long i = 0; i <= waiters; i++) {
		if (pthread_create(&threads[i], NULL, i ? waiter : holder, (void *)i))
			die("pthread_create");
		while (!(all[i + 1] = atomic_load(&tids[i])))
			usleep(1000);
	}
	open_gate(NULL, all);
	begin = clock_ns(CLOCK_MONOTONIC);
	for (long i = 0; i <= waiters; i++)
		pthread_join(threads[i], NULL);
	return workload_end(begin);
}
