/* The ranks of a job that meet in all-reduces of a real MPI, which mpirun starts.
 *
 *	mpirun -n RANKS mpi_ranks [--wait] [--linger] [CALLS=50] [CASE=even] [FOLDER]
 *
 * Each step is compute(), 2 ms asleep, then all_reduce() of FLOATS values. Cases:
 *
 *	even		all do the same
 *	tight		no compute(): all are in MPI_Allreduce nearly all the time
 *	late		rank LATE sleeps 8 ms more in load_batch() before each step
 *	pauses		it sleeps 2 s there before each step
 *	requests	even, but MPI_Iallreduce is called before compute(), and MPI_Wait after it; rank LATE calls
 *			load_batch() before
 *	tests		so, with MPI_Testall until all is done instead of MPI_Wait
 *	pipe		no all-reduces: each rank receives a message from the one before, calls compute(), and sends it to
 *			the next one; rank LATE calls load_batch(), too
 *	pipes		so, with MPI_Irecv, MPI_Isend and MPI_Waitall
 *	ring		each rank sends to the next one and receives from the one before by MPI_Sendrecv; rank LATE calls
 *			load_batch() before
 *	any		all others send to rank 0, which receives from any of them
 *	missing		in the middle, rank LATE never comes: it sleeps in forgets()
 *	other		in the middle, rank LATE asks for a broadcast
 *	dead		in the middle, rank LATE ends (mpirun --enable-recovery lets the others live)
 *	stopped		in the middle, rank LATE stops itself
 *
 * The last four never end by themselves: whoever started mpirun ends it, and the ranks end with it.
 *
 * Truth: rank 0 tells it. With FOLDER, which must be there, each rank also writes FOLDER/rank.N: for each call of
 * MPI_Allreduce, when it began and returned (CLOCK_MONOTONIC), two numbers of 64 bits in the machine's order. */
#include <limits.h>
#include <mpi.h>
#include "workload.h"

#define MAX_RANKS 16
#define MAX_CALLS 1000000
#define LATE 1
#define COMPUTE_NS 2000000
#define LATE_NS 8000000
#define PAUSE_NS 2000000000
#define FLOATS 1024

static const char *what = "even";
static long calls;
static int rank, ranks;
static float values[FLOATS], sums[FLOATS];
static uint64_t *times; /* two for each call */

static bool is_case(const char *name)
{
	return strcmp(what, name) == 0;
}

static void must(int error)
{
	if (error == MPI_SUCCESS)
		return;
	fprintf(stderr, "mpi_ranks: error %d\n", error);
	MPI_Abort(MPI_COMM_WORLD, 1);
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
	sleep_ns(is_case("pauses") ? PAUSE_NS : LATE_NS);
	KEEP_FRAME();
}

static NAMED void forgets(void)
{
	for (;;)
		sleep_ns(1000000000);
	KEEP_FRAME();
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
	if (is_case("other"))
		must(MPI_Bcast(values, FLOATS, MPI_FLOAT, 0, MPI_COMM_WORLD));
}

static NAMED void all_reduce(long step)
{
	if (step == calls / 2 && rank == LATE)
		fail();
	times[2 * step] = clock_ns(CLOCK_MONOTONIC);
	must(MPI_Allreduce(values, sums, FLOATS, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD));
	times[2 * step + 1] = clock_ns(CLOCK_MONOTONIC);
	KEEP_FRAME();
}

/* Begins an all-reduce before the work of the step, and waits for it behind it. */
static NAMED void overlap(long step)
{
	MPI_Request request;
	int done = 0;

	times[2 * step] = clock_ns(CLOCK_MONOTONIC);
	must(MPI_Iallreduce(values, sums, FLOATS, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request));
	compute();
	if (is_case("requests"))
		must(MPI_Wait(&request, MPI_STATUS_IGNORE));
	while (is_case("tests") && !done)
		must(MPI_Testall(1, &request, &done, MPI_STATUSES_IGNORE));
	times[2 * step + 1] = clock_ns(CLOCK_MONOTONIC);
	KEEP_FRAME();
}

static void work(void)
{
	compute();
	if (rank == LATE)
		load_batch();
}

static NAMED void stage(void)
{
	MPI_Request requests[2] = { MPI_REQUEST_NULL, MPI_REQUEST_NULL };

	if (is_case("pipes")) {
		if (rank > 0)
			must(MPI_Irecv(sums, FLOATS, MPI_FLOAT, rank - 1, 7, MPI_COMM_WORLD, &requests[0]));
		must(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
		work();
		if (rank < ranks - 1)
			must(MPI_Isend(values, FLOATS, MPI_FLOAT, rank + 1, 7, MPI_COMM_WORLD, &requests[1]));
		must(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
		return;
	}
	if (rank > 0)
		must(MPI_Recv(sums, FLOATS, MPI_FLOAT, rank - 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	work();
	if (rank < ranks - 1)
		must(MPI_Send(values, FLOATS, MPI_FLOAT, rank + 1, 7, MPI_COMM_WORLD));
	KEEP_FRAME();
}

static NAMED void ring(void)
{
	int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;

	work();
	must(MPI_Sendrecv(values, FLOATS, MPI_FLOAT, next, 7, sums, FLOATS, MPI_FLOAT, before, 7, MPI_COMM_WORLD,
			  MPI_STATUS_IGNORE));
	KEEP_FRAME();
}

static NAMED void from_any(void)
{
	MPI_Status status;

	work();
	if (rank)
		must(MPI_Send(values, FLOATS, MPI_FLOAT, 0, rank, MPI_COMM_WORLD));
	for (int i = 1; !rank && i < ranks; i++)
		must(MPI_Recv(sums, FLOATS, MPI_FLOAT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
	KEEP_FRAME();
}

/* A step without all_reduce(). */
static bool is_other(long step)
{
	if (is_case("requests") || is_case("tests")) {
		if (rank == LATE)
			load_batch();
		overlap(step);
	} else if (is_case("pipe") || is_case("pipes")) {
		stage();
	} else if (is_case("ring")) {
		ring();
	} else if (is_case("any")) {
		from_any();
	} else {
		return false;
	}
	return true;
}

static NAMED void train(void)
{
	for (long step = 0; step < calls; step++) {
		if (is_other(step))
			continue;
		if (!is_case("tight"))
			compute();
		if (rank == LATE && (is_case("late") || is_case("pauses")))
			load_batch();
		all_reduce(step);
	}
	KEEP_FRAME();
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

/* Until rank 0 says so: asleep, and in no function of MPI, whose waits would need a core. */
static void await_signal(const sigset_t *signals)
{
	int number;

	if (sigwait(signals, &number))
		die("sigwait");
}

static void signal_others(const int *pids)
{
	for (int i = 1; i < ranks; i++)
		kill(pids[i], SIGUSR1);
}

int main(int argc, char **argv)
{
	int pids[MAX_RANKS + 1] = { 0 }, self = getpid(), status = 0;
	uint64_t begin = 0;
	sigset_t signals;

	workload_begin(argc, argv);
	workload_child();
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	calls = workload_number(0, 50, MAX_CALLS);
	if (workload_argc > 1)
		what = workload_argv[1];
	times = calloc((size_t)calls, 2 * sizeof(*times));
	if (!times)
		die("calloc");
	must(MPI_Init(&argc, &argv));
	must(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	must(MPI_Comm_size(MPI_COMM_WORLD, &ranks));
	if (ranks > MAX_RANKS)
		must(MPI_ERR_OTHER);
	must(MPI_Gather(&self, 1, MPI_INT, pids, 1, MPI_INT, 0, MPI_COMM_WORLD));
	if (rank == 0) {
		open_gate(pids, pids);
		begin = clock_ns(CLOCK_MONOTONIC);
		signal_others(pids);
	} else {
		await_signal(&signals);
	}
	train();
	if (workload_argc > 2)
		write_times(workload_argv[2]);
	must(MPI_Barrier(MPI_COMM_WORLD));
	if (rank == 0) {
		status = workload_end(begin);
		signal_others(pids);
	} else {
		await_signal(&signals);
	}
	must(MPI_Finalize());
	return status;
}
