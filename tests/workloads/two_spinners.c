/* Two processes burn CPU on one core, so that each waits for it half of the time.
 *
 *	two_spinners [--wait] [--linger] [MILLISECONDS=2000] [CORE=the last one allowed, counted from 0 and given as CORE+1]
 *
 * Truth: processes "spinner-0" and "spinner-1"; per process runnable = wall - cpu, about half of the wall time as long as
 * nobody else uses the core, never blocked. */
#include <sched.h>
#include <sys/wait.h>
#include "workload.h"

static volatile uint64_t sink;

/* Reads the clock seldom: while the vDSO does, frame pointers do not see spin(). */
static NAMED void spin(uint64_t until)
{
	while (clock_ns(CLOCK_MONOTONIC) < until)
		for (int i = 0; i < 50000; i++)
			sink += (uint64_t)i;
}

static void pin(long core)
{
	cpu_set_t allowed, one;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		die("sched_getaffinity");
	if (core < 0)
		for (int i = 0; i < CPU_SETSIZE; i++)
			if (CPU_ISSET(i, &allowed))
				core = i;
	CPU_ZERO(&one);
	CPU_SET((size_t)core, &one);
	if (sched_setaffinity(0, sizeof(one), &one) < 0)
		die("sched_setaffinity");
}

static void spinner(int i, uint64_t length)
{
	struct thread_truth begin;
	char name[16];

	snprintf(name, sizeof(name), "spinner-%d", i);
	prctl(PR_SET_NAME, name);
	await_start();
	begin = thread_now();
	spin(begin.wall_ns + length);
	KEEP_FRAME();
	thread_done(&begin);
}

int main(int argc, char **argv)
{
	int pids[3] = { 0 };
	uint64_t begin;
	long ms, core;

	workload_begin(argc, argv);
	ms = workload_number(0, 2000, 60000);
	core = workload_number(1, 0, CPU_SETSIZE) - 1;
	for (int i = 0; i < 2; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			die("fork");
		if (pids[i] == 0) {
			workload_child();
			pin(core);
			spinner(i, (uint64_t)ms * 1000000u);
			_exit(0);
		}
	}
	open_gate(pids, pids);
	begin = clock_ns(CLOCK_MONOTONIC);
	for (int i = 0; i < 2; i++) {
		int status;

		if (waitpid(pids[i], &status, 0) != pids[i] || status != 0) {
			fprintf(stderr, "two_spinners: spinner %d failed\n", i);
			return 1;
		}
	}
	return workload_end(begin);
}
