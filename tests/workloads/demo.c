/* A small model of an inference process: the main thread feeds a native worker thread and waits for it; the worker picks
 * the top K of each row of scores, and topk asks the driver for the device's properties each time.
 *
 *	demo [--wait] [--linger] [MILLISECONDS=10000 [once]]
 *
 * With once it asks a single time, before the start, as it should: the worker then only computes. At its end it says on
 * standard error how many rows a second it did.
 *
 * Truth: one process alone spends most of its time in cudaGetDeviceProperties too, but eight of them do little more
 * together than one: they queue for one kernel mutex (libdemo_cuda.c). worker → topk → cudaGetDeviceProperties → ioctl.
 * Main waits in wait_for_worker() on a condition variable (calls and time as the program saw them, the mutex of the queue
 * included) and, for requests, in receive(). Needs CAP_NET_ADMIN. */
#include <pthread.h>
#include <sched.h>
#include "demo_cuda.h"
#include "workload.h"

#define QUEUE 8
#define ROW 8192
#define K 16

/* A condition variable whose waiters frame pointers can name: the C library's code has none. */
struct condition {
	atomic_uint signals;
};

/* Items [done, filled) are in the queue. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct condition not_empty, not_full;
static long filled, done;
static bool closed;
static float rows[QUEUE][ROW];
static atomic_int worker_tid;
static volatile float sink;
static struct cudaDeviceProp properties;
static bool ask_each_time = true;

static void fill(float *row)
{
	static uint32_t seed = 1;

	for (int i = 0; i < ROW; i++) {
		seed = seed * 1664525u + 1013904223u;
		row[i] = (float)(seed >> 8);
	}
}

static NAMED void condition_wait(struct condition *condition, pthread_mutex_t *mutex)
{
	unsigned int seen = atomic_load(&condition->signals);

	pthread_mutex_unlock(mutex);
	syscall6(SYS_futex, (long)&condition->signals, FUTEX_WAIT_PRIVATE, seen, 0, 0, 0);
	pthread_mutex_lock(mutex);
}

static void condition_signal(struct condition *condition)
{
	atomic_fetch_add(&condition->signals, 1);
	syscall6(SYS_futex, (long)&condition->signals, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}

static void fail(int error)
{
	fprintf(stderr, "demo: cudaGetDeviceProperties: %s\n", strerror(error));
	if (error == EPERM || error == EACCES)
		fprintf(stderr, "demo: run it as root (it needs CAP_NET_ADMIN to own a network interface)\n");
	else
		fprintf(stderr, "demo: load the kernel's tun module: modprobe tun\n");
	exit(1);
}

/* Keeps the K largest, sorted, by insertion. */
static NAMED void topk(const float *row, float *best, struct wait_truth *w)
{
	if (ask_each_time) {
		struct mark mark = wait_begins();
		int error = cudaGetDeviceProperties(&properties, 0);

		wait_ends(w, mark);
		if (error)
			fail(error);
	}
	memset(best, 0, K * sizeof(*best));
	for (int i = 0; i < ROW; i++) {
		int at = K;

		while (at > 0 && best[at - 1] < row[i])
			at--;
		if (at == K)
			continue;
		memmove(best + at + 1, best + at, (size_t)(K - 1 - at) * sizeof(*best));
		best[at] = row[i];
	}
	KEEP_FRAME();
}

static NAMED const float *wait_for_item(struct wait_truth *w)
{
	const float *row = NULL;
	struct mark mark;

	pthread_mutex_lock(&lock);
	while (done == filled && !closed) {
		mark = wait_begins();
		condition_wait(&not_empty, &lock);
		wait_ends(w, mark);
	}
	if (done < filled)
		row = rows[done % QUEUE];
	pthread_mutex_unlock(&lock);
	KEEP_FRAME();
	return row;
}

static NAMED void *worker(void *unused)
{
	struct wait_truth *query = new_wait("cudaGetDeviceProperties"), *idle = new_wait("wait_for_item");
	struct thread_truth begin;
	const float *row;
	float best[K];

	prctl(PR_SET_NAME, "worker");
	atomic_store(&worker_tid, query->tid);
	await_start();
	begin = thread_now();
	while ((row = wait_for_item(idle))) {
		topk(row, best, query);
		sink = best[0];
		pthread_mutex_lock(&lock);
		done++;
		condition_signal(&not_full);
		pthread_mutex_unlock(&lock);
	}
	thread_done(&begin);
	return unused;
}

/* Returns where the next item goes, once there is room. */
static NAMED float *wait_for_worker(struct wait_truth *w)
{
	struct mark mark;

	pthread_mutex_lock(&lock);
	while (filled - done == QUEUE) {
		mark = wait_begins();
		condition_wait(&not_full, &lock);
		wait_ends(w, mark);
	}
	pthread_mutex_unlock(&lock);
	KEEP_FRAME();
	return rows[filled % QUEUE];
}

/* Requests come in fours, from a client that takes a fifth of the time: never so long that the queue runs empty. */
static NAMED void receive(long item, struct wait_truth *w)
{
	static uint64_t last;

	if (item % 4)
		return;
	if (last)
		measured_sleep(w, (long)(clock_ns(CLOCK_MONOTONIC) - last) / 4);
	last = clock_ns(CLOCK_MONOTONIC);
	KEEP_FRAME();
}

static NAMED void feed(uint64_t until, struct wait_truth *requests, struct wait_truth *w)
{
	while (clock_ns(CLOCK_MONOTONIC) < until) {
		receive(filled, requests);
		fill(wait_for_worker(w));
		pthread_mutex_lock(&lock);
		filled++;
		condition_signal(&not_empty);
		pthread_mutex_unlock(&lock);
	}
	pthread_mutex_lock(&lock);
	closed = true;
	condition_signal(&not_empty);
	pthread_mutex_unlock(&lock);
}

static void read_arguments(long *ms)
{
	*ms = workload_number(0, 10000, (LIMIT_SECONDS - 10) * 1000);
	if (workload_argc < 2)
		return;
	if (workload_argc > 2 || strcmp(workload_argv[1], "once") != 0) {
		fprintf(stderr, "demo: %s: the arguments are [MILLISECONDS [once]]\n",
			workload_argv[workload_argc - 1]);
		exit(2);
	}
	ask_each_time = false;
}

static void tell_rate(uint64_t begin)
{
	fprintf(stderr, "demo %d: %.0f rows a second\n", getpid(),
		(double)done * 1e9 / (double)(clock_ns(CLOCK_MONOTONIC) - begin));
}

int main(int argc, char **argv)
{
	struct thread_truth begin;
	struct wait_truth *requests, *w;
	pthread_t thread;
	int error, tids[3] = { getpid() };
	long ms;

	workload_begin(argc, argv);
	read_arguments(&ms);
	error = cudaGetDeviceProperties(&properties, 0); /* creates the interface, before the start */
	if (error)
		fail(error);
	requests = new_wait("receive");
	w = new_wait("wait_for_worker");
	if (pthread_create(&thread, NULL, worker, NULL))
		die("pthread_create");
	while (!(tids[1] = atomic_load(&worker_tid)))
		sched_yield();
	open_gate(NULL, tids);
	begin = thread_now();
	feed(begin.wall_ns + (uint64_t)ms * 1000000u, requests, w);
	thread_done(&begin);
	pthread_join(thread, NULL);
	tell_rate(begin.wall_ns);
	return workload_end(begin.wall_ns);
}
