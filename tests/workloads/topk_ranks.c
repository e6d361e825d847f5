/* The ranks of a job, without frame pointers: each picks the top K of rows of scores, and topk() asks for the device's
 * properties each time, of the stand-ins for CUDA's libraries (libcudart.c, libcuda.c).
 *
 *	topk_ranks [--wait] [--linger] [PROCESSES=8] [CALLS=40] [monitor]
 *
 * The environment's STANDIN_DEVICE names the device: one of NVIDIA's driver, or of its stand-in (tests/vm/nvidia/).
 *
 * Truth: per process a record cudaGetDeviceProperties, measured around each call, and one on_cpu, with the time that the
 * thread's own clock went on meanwhile: their difference is what the thread waited, for the driver or for a core. Further
 * ones of the calls of the driver's library, as the runtime measured them. topk → cudaGetDeviceProperties → … → ioctl.
 *
 * With monitor the ranks ask for what is known without the GPU's firmware (cudaGetDeviceProperties_v2: its three controls
 * take the lock of the driver's API for read), and rest for PAUSE_MS before each call. The first process, `monitor`, asks
 * the firmware, again and again, with that lock taken for write: the ranks wait while it has the lock. */
#include <sys/wait.h>
#include "standin_cuda.h"
#include "workload.h"

#define MAX_PROCESSES 16
#define PAUSE_MS 5
#define ROW 512
#define K 8

static float row[ROW], best[K];
static bool cheaply;

static int ask(void)
{
	struct standin_properties properties;

	return cheaply ? cudaGetDeviceProperties_v2(&properties, 0) : cudaGetDeviceProperties(&properties, 0);
}

static void must(int error)
{
	if (!error)
		return;
	fprintf(stderr, "topk_ranks: error %d: does %s name a device?\n", error, STANDIN_DEVICE);
	exit(1);
}

static NAMED void topk(struct wait_truth *query, struct wait_truth *on_cpu)
{
	uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	struct mark mark = wait_begins();
	int error = ask();

	wait_ends(query, mark);
	on_cpu->ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
	on_cpu->calls++;
	must(error);
	memset(best, 0, sizeof(best));
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

static void wait_for_start(int ready)
{
	if (write(ready, "", 1) != 1)
		die("write");
	await_start();
}

static NAMED void monitor(long calls, int ready)
{
	int rate;

	prctl(PR_SET_NAME, "monitor");
	must(cudaDeviceGetAttribute(&rate, CLOCK_RATE, 0));
	wait_for_start(ready);
	for (long i = 0; i < calls; i++)
		must(cudaDeviceGetAttribute(&rate, CLOCK_RATE, 0));
	KEEP_FRAME();
}

/* `ready`: gets a byte when it waits for the start, and has used the device once: what that takes is not measured. */
static NAMED void rank(long calls, int ready)
{
	struct wait_truth *query = new_wait(cheaply ? "cudaGetDeviceProperties_v2" : "cudaGetDeviceProperties");
	struct wait_truth *on_cpu = new_wait("on_cpu");
	struct standin_truth *driver = standin_driver_calls();
	struct standin_truth before[STANDIN_DRIVER_CALLS];
	struct thread_truth begin;

	must(ask());
	memcpy(before, driver, sizeof(before));
	wait_for_start(ready);
	begin = thread_now();
	for (long i = 0; i < calls; i++) {
		if (cheaply)
			usleep(PAUSE_MS * 1000);
		row[i % ROW] = (float)i;
		topk(query, on_cpu);
	}
	thread_done(&begin);
	for (int i = 0; i < STANDIN_DRIVER_CALLS - 1; i++) {
		struct wait_truth *w;

		if (driver[i].calls == before[i].calls)
			continue;
		w = new_wait(driver[i].name);
		w->calls = driver[i].calls - before[i].calls;
		w->ns = driver[i].ns - before[i].ns;
	}
}

int main(int argc, char **argv)
{
	int pids[MAX_PROCESSES + 1] = { 0 }, ready[2];
	long processes, calls;
	uint64_t begin;

	workload_begin(argc, argv);
	processes = workload_number(0, 8, MAX_PROCESSES);
	calls = workload_number(1, 40, 1000000);
	cheaply = workload_argc > 2 && strcmp(workload_argv[2], "monitor") == 0;
	if (pipe(ready))
		die("pipe");
	for (int i = 0; i < processes; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			die("fork");
		if (pids[i])
			continue;
		workload_child();
		close(ready[0]);
		if (cheaply && i == 0)
			monitor(calls, ready[1]);
		else
			rank(calls, ready[1]);
		_exit(0);
	}
	close(ready[1]);
	for (char byte, i = 0; i < processes; i++)
		if (read(ready[0], &byte, 1) != 1)
			return 1; /* it has said why */
	open_gate(pids, pids);
	begin = clock_ns(CLOCK_MONOTONIC);
	for (int i = 0; i < processes; i++) {
		int status;

		if (waitpid(pids[i], &status, 0) != pids[i] || status != 0) {
			fprintf(stderr, "topk_ranks: process %d failed\n", i);
			return 1;
		}
	}
	return workload_end(begin);
}
