/* A training loop: each step computes and waits, and between two steps it waits for a batch.
 *
 *	steps [--wait] [--linger] [STEPS=50] [WORK_US=2000] [WAIT_US=3000] [BATCH_US=1500]
 *
 * Truth: main calls train_step() STEPS times, which computes for WORK_US of CPU time in compute() and sleeps for WAIT_US in
 * synchronise(); every 10th one sleeps for five times as long. Before each, next_batch() sleeps for BATCH_US. `waits` has
 * the number and the length of the calls of train_step(), and of the sleeps in synchronise() and in next_batch(). */
#include "workload.h"

static long work_ns, wait_ns, batch_ns;

static NAMED void compute(void)
{
	uint64_t until = clock_ns(CLOCK_THREAD_CPUTIME_ID) + (uint64_t)work_ns;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < until)
		KEEP_FRAME();
	KEEP_FRAME();
}

static NAMED void synchronise(struct wait_truth *w, long ns)
{
	measured_sleep(w, ns);
	KEEP_FRAME();
}

NAMED void train_step(struct wait_truth *w, long ns)
{
	compute();
	synchronise(w, ns);
	KEEP_FRAME();
}

static NAMED void next_batch(struct wait_truth *w)
{
	measured_sleep(w, batch_ns);
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	struct wait_truth *steps, *waits, *batches;
	struct thread_truth self;
	long count;
	uint64_t begin;

	workload_begin(argc, argv);
	count = workload_number(0, 50, 100000);
	work_ns = workload_number(1, 2000, 1000000) * 1000;
	wait_ns = workload_number(2, 3000, 1000000) * 1000;
	batch_ns = workload_number(3, 1500, 1000000) * 1000;
	steps = new_wait("train_step");
	waits = new_wait("synchronise");
	batches = new_wait("next_batch");
	open_gate(NULL, NULL);
	begin = clock_ns(CLOCK_MONOTONIC);
	self = thread_now();
	for (long i = 0; i < count; i++) {
		struct mark mark;

		next_batch(batches);
		mark = wait_begins();
		train_step(waits, i % 10 == 9 ? 5 * wait_ns : wait_ns);
		wait_ends(steps, mark);
	}
	thread_done(&self);
	return workload_end(begin);
}
