/* The ranks of a job that meet in all-reduces, of the stand-in for NCCL (libnccl.c), one process each.
 *
 *	nccl_ranks [--wait] [--linger] [RANKS=4] [CALLS=50] [CASE=even] [FOLDER]
 *
 * Each step is compute(), 2 ms asleep, then all_reduce() of FLOATS values, then, if the library only enqueues,
 * cudaStreamSynchronize. Cases:
 *
 *	even		all do the same
 *	late		rank LATE sleeps 8 ms more in load_batch() before each step
 *	burns		it runs for 8 ms there
 *	turns		rank i does that in step i, modulo the number of ranks
 *	ring		each rank sends to the next one and receives from the one before, in a group, after each step
 *	grouped		two all-reduces of the step are in a group; rank LATE asks for them in time, and calls load_batch()
 *			before it ends the group
 *	graphs		the first step captures two all-reduces into a graph, each step launches it
 *	split		even and odd ranks meet in a communicator of their own, too
 *	missing		in the middle, rank LATE never comes: it sleeps in forgets()
 *	size, other	in the middle, rank LATE asks for another size, or for a broadcast
 *	crossed		in the middle, of two communicators rank LATE asks for the second one first
 *	dead, stopped	in the middle, rank LATE ends, or stops itself
 *
 * The last six never end by themselves: the parent waits until standard input closes, and ends them.
 *
 * Truth: per rank a record ncclAllReduce, or ncclGroupEnd, measured around each call, and cudaStreamSynchronize. With
 * FOLDER, which must be there, each rank also writes FOLDER/rank.N: for each call of ncclAllReduce of all ranks, or of
 * ncclGroupEnd, when it began and returned (CLOCK_MONOTONIC), two numbers of 64 bits in the machine's order. */
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include "standin_nccl.h"
#include "workload.h"

#define MAX_RANKS 16
#define MAX_CALLS 200000
#define LATE 1
#define COMPUTE_NS 2000000
#define LATE_NS 8000000
#define FLOATS 1024

static const char *what = "even";
static long ranks, calls;
static int rank;
static float values[FLOATS];
static ncclComm_t world, part, other;
static struct standin_stream *stream;
static uint64_t *times; /* two for each call */

static bool is_case(const char *name)
{
	return strcmp(what, name) == 0;
}

static void must(int error)
{
	if (!error)
		return;
	fprintf(stderr, "nccl_ranks: error %d\n", error);
	exit(1);
}

static void sleep_ns(long ns)
{
	struct timespec length = { ns / 1000000000, ns % 1000000000 };

	syscall6(SYS_nanosleep, (long)&length, 0, 0, 0, 0, 0);
}

static NAMED void compute(void)
{
	sleep_ns(COMPUTE_NS);
	KEEP_FRAME();
}

static NAMED void load_batch(void)
{
	uint64_t until = clock_ns(CLOCK_MONOTONIC) + LATE_NS;

	if (!is_case("burns"))
		sleep_ns(LATE_NS);
	while (is_case("burns") && clock_ns(CLOCK_MONOTONIC) < until)
		;
	KEEP_FRAME();
}

static NAMED void forgets(void)
{
	for (;;)
		sleep_ns(1000000000);
	KEEP_FRAME();
}

static bool is_late(long step)
{
	if (is_case("turns"))
		return step % ranks == rank;
	return (is_case("late") || is_case("burns")) && rank == LATE;
}

/* What goes wrong in the middle. */
static void fail(void)
{
	if (is_case("missing"))
		forgets();
	if (is_case("dead"))
		_exit(3);
	if (is_case("stopped"))
		raise(SIGSTOP);
	if (is_case("size"))
		must(ncclAllReduce(values, values, FLOATS / 2, NCCL_FLOAT32, NCCL_SUM, world, stream));
	if (is_case("other"))
		must(ncclBroadcast(values, values, FLOATS, NCCL_FLOAT32, 0, world, stream));
	if (is_case("crossed"))
		must(ncclAllReduce(values, values, FLOATS, NCCL_FLOAT32, NCCL_SUM, other, stream));
}

static NAMED void all_reduce(struct wait_truth *w, long step)
{
	struct mark mark;

	if (step == calls / 2 && rank == LATE)
		fail();
	mark = wait_begins();
	must(ncclAllReduce(values, values, FLOATS, NCCL_FLOAT32, NCCL_SUM, world, stream));
	times[2 * step] = mark.ns;
	call_ends(w, mark);
	times[2 * step + 1] = clock_ns(CLOCK_MONOTONIC);
	if (is_case("crossed"))
		must(ncclAllReduce(values, values, FLOATS, NCCL_FLOAT32, NCCL_SUM, other, stream));
	KEEP_FRAME();
}

static NAMED void all_reduce_two(struct wait_truth *w, long step)
{
	struct mark mark;

	must(ncclGroupStart());
	for (int i = 0; i < 2; i++)
		must(ncclAllReduce(values, values, FLOATS, NCCL_FLOAT32, NCCL_SUM, world, stream));
	if (rank == LATE)
		load_batch();
	mark = wait_begins();
	must(ncclGroupEnd());
	times[2 * step] = mark.ns;
	call_ends(w, mark);
	times[2 * step + 1] = clock_ns(CLOCK_MONOTONIC);
	KEEP_FRAME();
}

static NAMED void launch_graph(void)
{
	static struct standin_graph *graph;

	if (!graph) {
		must(cudaStreamBeginCapture(stream, 0));
		for (int i = 0; i < 2; i++)
			must(ncclAllReduce(values, values, FLOATS, NCCL_FLOAT32, NCCL_SUM, world, stream));
		must(cudaStreamEndCapture(stream, &graph));
		must(cudaGraphInstantiate(&graph, graph, 0));
	}
	must(cudaGraphLaunch(graph, stream));
	KEEP_FRAME();
}

static NAMED void pass_on(void)
{
	must(ncclGroupStart());
	must(ncclSend(values, FLOATS, NCCL_FLOAT32, (int)((rank + 1) % ranks), world, stream));
	must(ncclRecv(values, FLOATS, NCCL_FLOAT32, (int)((rank + ranks - 1) % ranks), world, stream));
	must(ncclGroupEnd());
	KEEP_FRAME();
}

static void join_all(const ncclUniqueId *ids)
{
	must(ncclCommInitRank(&world, (int)ranks, ids[0], rank));
	if (is_case("crossed"))
		must(ncclCommInitRank(&other, (int)ranks, ids[1], rank));
	if (is_case("split"))
		must(ncclCommSplit(world, rank % 2, 0, &part, NULL));
	must(cudaStreamCreate(&stream));
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

static NAMED void train(const ncclUniqueId *ids, int ready, const char *folder)
{
	bool is_grouped = is_case("grouped");
	struct wait_truth *reduce = new_wait(is_grouped ? "ncclGroupEnd" : "ncclAllReduce");
	struct wait_truth *synchronize = new_wait("cudaStreamSynchronize");
	struct thread_truth begin;
	struct mark mark;

	join_all(ids);
	if (write(ready, "", 1) != 1)
		die("write");
	await_start();
	begin = thread_now();
	for (long step = 0; step < calls; step++) {
		compute();
		if (is_late(step))
			load_batch();
		if (is_grouped)
			all_reduce_two(reduce, step);
		else if (is_case("graphs"))
			launch_graph();
		else
			all_reduce(reduce, step);
		if (is_case("ring"))
			pass_on();
		if (is_case("split"))
			must(ncclAllReduce(values, values, FLOATS, NCCL_FLOAT32, NCCL_SUM, part, stream));
		mark = wait_begins();
		must(cudaStreamSynchronize(stream));
		call_ends(synchronize, mark);
	}
	thread_done(&begin);
	if (folder)
		write_times(folder);
	KEEP_FRAME();
}

static bool hangs(void)
{
	return is_case("missing") || is_case("size") || is_case("other") || is_case("crossed") || is_case("dead") ||
	       is_case("stopped");
}

static void wait_for_all(const int *pids)
{
	char byte;
	int status;

	if (hangs()) {
		while (read(STDIN_FILENO, &byte, 1) > 0)
			;
		for (int i = 0; i < ranks; i++)
			kill(pids[i], SIGKILL);
	}
	for (int i = 0; i < ranks; i++)
		if (waitpid(pids[i], &status, 0) < 0 || (status && !hangs()))
			die("a rank failed");
}

int main(int argc, char **argv)
{
	int pids[MAX_RANKS + 1] = { 0 }, ready[2];
	ncclUniqueId ids[2];
	uint64_t begin;
	char text[16], byte;

	workload_begin(argc, argv);
	ranks = workload_number(0, 4, MAX_RANKS);
	calls = workload_number(1, 50, MAX_CALLS);
	if (workload_argc > 2)
		what = workload_argv[2];
	times = calloc((size_t)calls, 2 * sizeof(*times));
	if (!times || pipe(ready))
		die("pipe");
	for (int i = 0; i < 2; i++)
		must(ncclGetUniqueId(&ids[i]));
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
		train(ids, ready[1], workload_argc > 3 ? workload_argv[3] : NULL);
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
