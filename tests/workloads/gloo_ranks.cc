/* The ranks of a job that meet in all-reduces, of the stand-in for PyTorch's Gloo (libtorch_cpu.cc), one process each.
 *
 *	gloo_ranks [--wait] [--linger] [RANKS=4] [CALLS=50] [CASE=even] [FOLDER]
 *
 * Each step is 2 ms asleep, then all_reduce(), which waits for its end. Cases:
 *
 *	even	all do the same
 *	late	rank LATE sleeps 8 ms more in load_batch() before each step
 *	base	each step has an all-gather, whose function calls that of another one, and a barrier, too
 *	throws	in each step, a wrong call of all-reduce throws before the right one
 *	made	as late; each rank makes its group after the start
 *	missing	in the middle, rank LATE never comes: it sleeps in forgets()
 *
 * The last one never ends by itself: the parent waits until standard input closes, and ends the ranks.
 *
 * Truth: per rank a record all_reduce, measured around the call and its wait. With FOLDER, which must be there, each rank
 * also writes FOLDER/rank.N: for each all-reduce, when it was called and when its wait returned (CLOCK_MONOTONIC), two
 * numbers of 64 bits in the machine's order. */
#include <stdexcept>
#include <limits.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include "standin_gloo.h"
#include "workload.h"

#define MAX_CALLS 200000
#define LATE 1
#define COMPUTE_NS 2000000
#define LATE_NS 8000000

using c10d::ProcessGroupGloo;

static const char *what = "even";
static long ranks, calls;
static int rank;
static c10d::Store *store;
static uint64_t *times; /* two for each call */

static bool is_case(const char *name)
{
	return strcmp(what, name) == 0;
}

static void sleep_ns(long ns)
{
	struct timespec length = { ns / 1000000000, ns % 1000000000 };

	syscall6(SYS_nanosleep, (long)&length, 0, 0, 0, 0, 0);
}

static NAMED void load_batch(void)
{
	sleep_ns(LATE_NS);
	KEEP_FRAME();
}

static NAMED void forgets(void)
{
	for (;;)
		sleep_ns(1000000000);
	KEEP_FRAME();
}

static NAMED void all_reduce(ProcessGroupGloo *group, struct wait_truth *w, long step)
{
	std::vector<at::Tensor> tensors(1);
	struct mark mark = wait_begins();

	times[2 * step] = mark.ns;
	group->allreduce(tensors, c10d::AllreduceOptions())->wait();
	call_ends(w, mark);
	times[2 * step + 1] = clock_ns(CLOCK_MONOTONIC);
	KEEP_FRAME();
}

static void more(ProcessGroupGloo *group)
{
	at::Tensor output, input;

	group->_allgather_base(output, input, c10d::AllgatherOptions())->wait();
	group->barrier(c10d::BarrierOptions())->wait();
}

static void fails(ProcessGroupGloo *group)
{
	std::vector<at::Tensor> none;

	try {
		group->allreduce(none, c10d::AllreduceOptions());
	} catch (const std::invalid_argument &) {
		return;
	}
	die("nothing was thrown");
}

static ProcessGroupGloo *make_group(void)
{
	return new ProcessGroupGloo(c10::intrusive_ptr<c10d::Store>(store), rank, (int)ranks,
				    c10::intrusive_ptr<ProcessGroupGloo::Options>(new ProcessGroupGloo::Options));
}

static void write_times(const char *folder)
{
	char path[PATH_MAX];
	FILE *file;

	snprintf(path, sizeof(path), "%s/rank.%d", folder, rank);
	file = fopen(path, "w");
	if (!file || fwrite(times, 2 * sizeof(*times), (size_t)calls, file) != (size_t)calls || fclose(file))
		die(path);
}

static NAMED void train(int ready, const char *folder)
{
	struct wait_truth *reduce = new_wait("all_reduce");
	ProcessGroupGloo *group = is_case("made") ? NULL : make_group();
	struct thread_truth begin;

	if (write(ready, "", 1) != 1)
		die("write");
	await_start();
	begin = thread_now();
	if (!group)
		group = make_group();
	for (long step = 0; step < calls; step++) {
		sleep_ns(COMPUTE_NS);
		if (rank == LATE && (is_case("late") || is_case("made")))
			load_batch();
		if (rank == LATE && is_case("missing") && step == calls / 2)
			forgets();
		if (is_case("throws"))
			fails(group);
		all_reduce(group, reduce, step);
		if (is_case("base"))
			more(group);
	}
	thread_done(&begin);
	if (folder)
		write_times(folder);
	delete group;
	KEEP_FRAME();
}

static void wait_for_all(const int *pids)
{
	bool hangs = is_case("missing");
	char byte;
	int status;

	if (hangs) {
		while (read(STDIN_FILENO, &byte, 1) > 0)
			;
		for (int i = 0; i < ranks; i++)
			kill(pids[i], SIGKILL);
	}
	for (int i = 0; i < ranks; i++)
		if (waitpid(pids[i], &status, 0) < 0 || (status && !hangs))
			die("a rank failed");
}

int main(int argc, char **argv)
{
	int pids[MOST_RANKS + 1] = { 0 }, ready[2];
	uint64_t begin;
	char text[16], byte;
	void *shared;

	workload_begin(argc, argv);
	ranks = workload_number(0, 4, MOST_RANKS);
	calls = workload_number(1, 50, MAX_CALLS);
	if (workload_argc > 2)
		what = workload_argv[2];
	times = (uint64_t *)calloc((size_t)calls, 2 * sizeof(*times));
	shared = mmap(NULL, sizeof(*store), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!times || shared == MAP_FAILED || pipe(ready))
		die("memory");
	store = (c10d::Store *)shared;
	store->references = 1; /* nobody frees it */
	snprintf(text, sizeof(text), "%ld", ranks);
	setenv("WORLD_SIZE", text, 1);
	for (rank = 0; rank < ranks; rank++) {
		snprintf(text, sizeof(text), "%d", rank);
		setenv("RANK", text, 1);
		pids[rank] = fork();
		if (pids[rank] < 0)
			die("fork");
		if (pids[rank])
			continue;
		workload_child();
		close(ready[0]);
		train(ready[1], workload_argc > 3 ? workload_argv[3] : NULL);
		_exit(0);
	}
	close(ready[1]);
	for (int i = 0; i < ranks; i++)
		if (read(ready[0], &byte, 1) != 1)
			die("a rank failed");
	begin = clock_ns(CLOCK_MONOTONIC);
	open_gate(pids, NULL);
	wait_for_all(pids);
	return workload_end(begin);
}
