/* Processes in a ring pass one token on.
 *
 *	pipe_chain [--wait] [--linger] [PROCESSES=4] [LAPS=500] [WORK_US=0]
 *
 * Truth: process "stage-I" reads the token LAPS times in read_token() and writes it LAPS times in write_token(), which
 * never waits. Between the two it works for so long in work(): the others wait for that. A stage waits for all of them,
 * and is woken by the one before it. */
#include <fcntl.h>
#include <sys/wait.h>
#include "burn.h"
#include "workload.h"

#define MAX_STAGES 32

static NAMED void read_token(struct wait_truth *w, int fd)
{
	char token;

	if (measured(w, SYS_read, fd, (long)&token, 1, 0, 0, 0) != 1)
		die("read");
	KEEP_FRAME();
}

static NAMED void write_token(struct wait_truth *w, int fd)
{
	if (measured(w, SYS_write, fd, (long)"t", 1, 0, 0, 0) != 1)
		die("write");
	KEEP_FRAME();
}

static NAMED void work(long us)
{
	burn(us * 1000);
	KEEP_FRAME();
}

static void stage(int i, int in, int out, long laps, long us)
{
	struct wait_truth *reads = new_wait("read_token"), *writes = new_wait("write_token");
	struct thread_truth begin;
	char name[16];

	snprintf(name, sizeof(name), "stage-%d", i);
	prctl(PR_SET_NAME, name);
	await_start();
	begin = thread_now();
	for (long lap = 0; lap < laps; lap++) {
		if (i == 0)
			write_token(writes, out);
		read_token(reads, in);
		if (us)
			work(us);
		if (i != 0)
			write_token(writes, out);
	}
	thread_done(&begin);
}

int main(int argc, char **argv)
{
	int pipes[MAX_STAGES][2], pids[MAX_STAGES + 1] = { 0 };
	long stages, laps, us;
	uint64_t begin;

	workload_begin(argc, argv);
	stages = workload_number(0, 4, MAX_STAGES);
	laps = workload_number(1, 500, 1000000);
	us = workload_number(2, 0, 1000000);
	for (int i = 0; i < stages; i++)
		if (pipe2(pipes[i], O_CLOEXEC) < 0)
			die("pipe");
	for (int i = 0; i < stages; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			die("fork");
		if (pids[i] == 0) {
			workload_child();
			stage(i, pipes[i][0], pipes[(i + 1) % stages][1], laps, us);
			_exit(0);
		}
	}
	open_gate(pids, pids);
	begin = clock_ns(CLOCK_MONOTONIC);
	for (int i = 0; i < stages; i++) {
		int status;

		if (waitpid(pids[i], &status, 0) != pids[i] || status != 0) {
			fprintf(stderr, "pipe_chain: stage %d failed\n", i);
			return 1;
		}
	}
	return workload_end(begin);
}
