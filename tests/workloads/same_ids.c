/* Processes that have one pid, one after the other, and threads that have one tid.
 *
 *	same_ids [--wait] [--linger] [ROUNDS=10]
 *
 * Truth: three processes with the pid of the first one, named life-0, life-1 and life-2, each this program executed
 * anew: the i-th sleeps i + 1 ms in life_i(), ROUNDS times. Then three threads of the main process with the tid of the
 * first one, named again-0 and so on, which do the same in again_i(). After each sleep they call cudaMemcpy() i + 1
 * times, for 64 bytes to the device, which calls ask(), which makes an ioctl that fails (TIOCGWINSZ on no terminal). The records of waits have the ids. Another thread
 * that gets the id meanwhile makes a thread with another id, which does nothing, and is joined. Needs root. */
#include <linux/sched.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include "workload.h"

#define LIVES 3
#define TRIES 2000

static long rounds;
static int nowhere[2];

static NAMED void ask(void)
{
	struct winsize size;

	ioctl(nowhere[0], TIOCGWINSZ, &size);
	KEEP_FRAME();
}

static NAMED int cudaMemcpy(void *to, const void *from, size_t size, int kind)
{
	(void)to, (void)from, (void)size, (void)kind;
	ask();
	KEEP_FRAME();
	return 0;
}

#define SLEEPS_IN(name, ms)                                                                                            \
	static NAMED void name(struct wait_truth *w)                                                                   \
	{                                                                                                              \
		for (long i = 0; i < rounds; i++) {                                                                    \
			measured_sleep(w, (ms)*1000000L);                                                              \
			for (int j = 0; j < (ms); j++)                                                                 \
				cudaMemcpy(NULL, NULL, 64, 1);                                                         \
		}                                                                                                      \
		KEEP_FRAME();                                                                                          \
	}

SLEEPS_IN(life_0, 1)
SLEEPS_IN(life_1, 2)
SLEEPS_IN(life_2, 3)
SLEEPS_IN(again_0, 1)
SLEEPS_IN(again_1, 2)
SLEEPS_IN(again_2, 3)

static void (*const life[])(struct wait_truth *) = { life_0, life_1, life_2 };
static void (*const again[])(struct wait_truth *) = { again_0, again_1, again_2 };
static const char *const lives[] = { "life_0", "life_1", "life_2" };
static const char *const agains[] = { "again_0", "again_1", "again_2" };

static void open_nowhere(void)
{
	if (pipe(nowhere) < 0)
		die("pipe");
}

/* The program that a child executes: same_ids --life I REPORT ROUNDS */
static int live(char **argv)
{
	int i = atoi(argv[2]), report = atoi(argv[3]);
	struct wait_truth mine = { 0 };
	char name[16];

	rounds = atol(argv[4]);
	open_nowhere();
	workload_child();
	snprintf(name, sizeof(name), "life-%d", i);
	prctl(PR_SET_NAME, name);
	warm_up(&mine);
	life[i](&mine);
	return write(report, &mine, sizeof(mine)) != sizeof(mine);
}

/* Like fork(), with this pid, if it is not 0. */
static int fork_as(int pid)
{
	pid_t wanted[] = { pid };
	struct clone_args how = { .exit_signal = SIGCHLD };
	struct timespec some = { 0, 1000000 };

	if (pid) {
		how.set_tid = (uint64_t)wanted;
		how.set_tid_size = 1;
	}
	for (int i = 0; i < TRIES; i++) {
		int child = syscall(SYS_clone3, &how, sizeof(how));

		if (child >= 0)
			return child;
		if (errno != EEXIST)
			die("clone3");
		nanosleep(&some, NULL);
	}
	fprintf(stderr, "same_ids: somebody else has the pid\n");
	exit(1);
}

static int run_process(int i, int pid, struct wait_truth *truth)
{
	char number[2][16], often[16];
	struct wait_truth told;
	int report[2], status, child;

	if (pipe(report) < 0)
		die("pipe");
	snprintf(number[0], sizeof(number[0]), "%d", i);
	snprintf(number[1], sizeof(number[1]), "%d", report[1]);
	snprintf(often, sizeof(often), "%ld", rounds);
	child = fork_as(pid);
	if (!child) {
		execl("/proc/self/exe", "same_ids", "--life", number[0], number[1], often, (char *)NULL);
		_exit(1);
	}
	if (read(report[0], &told, sizeof(told)) != sizeof(told) || waitpid(child, &status, 0) != child || status)
		die("a child");
	truth->calls = told.calls;
	truth->blocks = told.blocks;
	truth->ns = told.ns;
	truth->pid = truth->tid = child;
	close(report[0]);
	close(report[1]);
	return child;
}

struct turn {
	int i, wanted, got;
	struct wait_truth *truth;
};

static void *run_thread(void *argument)
{
	struct turn *turn = argument;
	char name[16];

	turn->got = gettid();
	if (turn->wanted && turn->got != turn->wanted)
		return NULL;
	snprintf(name, sizeof(name), "again-%d", turn->i);
	prctl(PR_SET_NAME, name);
	turn->truth->tid = turn->got;
	again[turn->i](turn->truth);
	return NULL;
}

/* The next id that the kernel gives is this one, unless somebody is faster. */
static void next_id(int id)
{
	FILE *file = fopen("/proc/sys/kernel/ns_last_pid", "w");

	if (!file || fprintf(file, "%d", id - 1) < 0 || fclose(file))
		die("ns_last_pid");
}

static int again_thread(int i, int tid, struct wait_truth *truth)
{
	struct turn turn = { .i = i, .wanted = tid, .truth = truth };
	pthread_t thread;

	for (int j = 0; j < TRIES; j++) {
		if (tid)
			next_id(tid);
		if (pthread_create(&thread, NULL, run_thread, &turn) || pthread_join(thread, NULL))
			die("pthread_create");
		if (!tid || turn.got == tid)
			return turn.got;
	}
	fprintf(stderr, "same_ids: somebody else has the tid\n");
	exit(1);
}

int main(int argc, char **argv)
{
	struct wait_truth *processes[LIVES], *threads[LIVES];
	struct thread_truth begin;
	int pid = 0, tid = 0;

	if (argc == 5 && strcmp(argv[1], "--life") == 0)
		return live(argv);
	workload_begin(argc, argv);
	rounds = workload_number(0, 10, 10000);
	for (int i = 0; i < LIVES; i++) {
		processes[i] = new_wait(lives[i]);
		threads[i] = new_wait(agains[i]);
	}
	open_nowhere();
	open_gate(NULL, NULL);
	begin = thread_now();
	for (int i = 0; i < LIVES; i++)
		pid = run_process(i, pid, processes[i]);
	for (int i = 0; i < LIVES; i++)
		tid = again_thread(i, tid, threads[i]);
	thread_done(&begin);
	return workload_end(begin.wall_ns);
}
