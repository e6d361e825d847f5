/* Many short-lived children.
 *
 *	fork_storm [--wait] [--linger] [--exec] [CHILDREN=200] [AT_ONCE=1]
 *
 * Truth: each child sleeps 1 ms, once, in child_sleep(); with --exec it becomes storm_child and sleeps in
 * exec_child_sleep() there; without, it then calls cudaMemcpy(), for 64 bytes to the device, once. It reports what it measured through a pipe; the sums stand in one record (pid and tid are
 * the parent's). The parent waits in reap(). */
#include <sys/ioctl.h>
#include <sys/wait.h>
#include "workload.h"

static char storm_child[4096];

/* It makes an ioctl that fails. */
static NAMED int cudaMemcpy(void *to, const void *from, size_t size, int kind)
{
	struct winsize found;

	(void)to, (void)from, (void)size, (void)kind;
	ioctl(-1, TIOCGWINSZ, &found);
	KEEP_FRAME();
	return 0;
}

static NAMED void child_sleep(struct wait_truth *w)
{
	measured_sleep(w, 1000000);
	KEEP_FRAME();
}

static NAMED void reap(struct wait_truth *w)
{
	int status = -1;

	if (measured(w, SYS_wait4, -1, (long)&status, 0, 0, 0, 0) < 0 || status != 0) {
		fprintf(stderr, "fork_storm: a child failed (status %d)\n", status);
		exit(1);
	}
	KEEP_FRAME();
}

static void start_child(bool with_exec, int report)
{
	int pid = fork();

	if (pid < 0)
		die("fork");
	if (pid)
		return;
	workload_child();
	if (with_exec) {
		char fd[16];

		snprintf(fd, sizeof(fd), "%d", report);
		execl(storm_child, "storm_child", fd, (char *)NULL);
	} else {
		struct wait_truth mine = { 0 };

		warm_up(&mine);
		child_sleep(&mine);
		cudaMemcpy(NULL, NULL, 64, 1);
		if (write(report, &mine, sizeof(mine)) == sizeof(mine))
			_exit(0);
	}
	_exit(1);
}

static void find_storm_child(void)
{
	ssize_t length = readlink("/proc/self/exe", storm_child, sizeof(storm_child) - 16);
	char *slash;

	if (length < 0)
		die("/proc/self/exe");
	storm_child[length] = 0;
	slash = strrchr(storm_child, '/');
	strcpy(slash + 1, "storm_child");
	if (access(storm_child, X_OK) < 0)
		die(storm_child);
}

int main(int argc, char **argv)
{
	struct wait_truth *sleeps, *reaps, one;
	struct thread_truth begin;
	long children, at_once;
	bool with_exec;
	int report[2];

	workload_begin(argc, argv);
	with_exec = workload_argc > 0 && strcmp(workload_argv[0], "--exec") == 0;
	children = workload_number(with_exec, 200, 100000);
	at_once = workload_number(with_exec + 1, 1, 64);
	if (with_exec)
		find_storm_child();
	if (pipe(report) < 0)
		die("pipe");
	sleeps = new_wait(with_exec ? "exec_child_sleep" : "child_sleep");
	reaps = new_wait("reap");
	open_gate(NULL, NULL);
	begin = thread_now();
	for (long started = 0, reaped = 0; reaped < children; reaped++) {
		while (started < children && started - reaped < at_once) {
			start_child(with_exec, report[1]);
			started++;
		}
		reap(reaps);
		if (read(report[0], &one, sizeof(one)) != sizeof(one))
			die("a child's report");
		sleeps->calls += one.calls;
		sleeps->blocks += one.blocks;
		sleeps->ns += one.ns;
	}
	thread_done(&begin);
	return workload_end(begin.wall_ns);
}
