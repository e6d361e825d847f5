/* Threads call ncclAllReduce of the stand-in for NCCL (libnccl.c) as fast as they can.
 *
 *	nccl_storm [--wait] [--linger] [PROCESSES=2] [THREADS=2] [CALLS=50000]
 *
 * Each thread has a communicator of its own with a single rank: none waits for another one, and none for a stream.
 *
 * Truth: each thread makes CALLS calls, and its times are those of the calls. */
#include <pthread.h>
#include <sys/wait.h>
#include "standin_nccl.h"
#include "workload.h"

#define MOST 16
#define MOST_CALLS 100000000

static long processes, threads, calls;
static pthread_barrier_t ready;

static void must(int error)
{
	if (!error)
		return;
	fprintf(stderr, "nccl_storm: error %d\n", error);
	exit(1);
}

static NAMED void storm(ncclComm_t comm)
{
	static float values[16];

	for (long i = 0; i < calls; i++)
		must(ncclAllReduce(values, values, 16, NCCL_FLOAT32, NCCL_SUM, comm, NULL));
	KEEP_FRAME();
}

static void *work(void *unused)
{
	struct thread_truth begin;
	ncclUniqueId id;
	ncclComm_t comm;

	must(ncclGetUniqueId(&id));
	must(ncclCommInitRank(&comm, 1, id, 0));
	pthread_barrier_wait(&ready);
	await_start();
	begin = thread_now();
	storm(comm);
	thread_done(&begin);
	return unused;
}

static void be_process(int told)
{
	pthread_t made[MOST];

	workload_child();
	if (pthread_barrier_init(&ready, NULL, (unsigned int)threads + 1))
		die("pthread_barrier_init");
	for (long i = 0; i < threads; i++)
		if (pthread_create(&made[i], NULL, work, NULL))
			die("pthread_create");
	pthread_barrier_wait(&ready);
	if (write(told, "", 1) != 1)
		die("write");
	for (long i = 0; i < threads; i++)
		pthread_join(made[i], NULL);
	_exit(0);
}

int main(int argc, char **argv)
{
	int pids[MOST + 1] = { 0 }, pair[2], status;
	uint64_t begin;
	char byte;

	workload_begin(argc, argv);
	processes = workload_number(0, 2, MOST);
	threads = workload_number(1, 2, MOST);
	calls = workload_number(2, 50000, MOST_CALLS);
	setenv("STANDIN_NCCL", "blocking", 1);
	if (pipe(pair))
		die("pipe");
	for (long i = 0; i < processes; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			die("fork");
		if (!pids[i])
			be_process(pair[1]);
	}
	for (long i = 0; i < processes; i++)
		if (read(pair[0], &byte, 1) != 1)
			die("read");
	begin = clock_ns(CLOCK_MONOTONIC);
	open_gate(pids, NULL);
	for (long i = 0; i < processes; i++)
		if (waitpid(pids[i], &status, 0) < 0 || status)
			die("a process failed");
	return workload_end(begin);
}
