/* A training loop whose data loader is made anew for each epoch.
 *
 *	data_loader [--wait] [--linger] [EPOCHS=5] [STEPS=20] [GAP_MS=100]
 *
 * Truth: main computes STEPS steps of about 2 ms each in step(); before each epoch it makes a thread "loader" and waits for
 * it in next_epoch() until it has read the data, which takes GAP_MS in read_data(). So main stands still for GAP_MS once an
 * epoch, each time when a thread has just been made, and that thread wakes it. */
#include <pthread.h>
#include "workload.h"

static atomic_int ready;
static long gap_ns;

static NAMED void step(void)
{
	uint64_t until = clock_ns(CLOCK_THREAD_CPUTIME_ID) + 2000000;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < until)
		KEEP_FRAME();
	KEEP_FRAME();
}

static NAMED void read_data(struct wait_truth *w)
{
	measured_sleep(w, gap_ns);
	KEEP_FRAME();
}

static void *loader(void *unused)
{
	struct wait_truth *w = new_wait("read_data");

	prctl(PR_SET_NAME, "loader");
	read_data(w);
	atomic_store(&ready, 1);
	syscall6(SYS_futex, (long)&ready, FUTEX_WAKE, 1, 0, 0, 0);
	return unused;
}

static NAMED void next_epoch(struct wait_truth *w)
{
	while (!atomic_load(&ready))
		measured(w, SYS_futex, (long)&ready, FUTEX_WAIT, 0, 0, 0, 0);
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	struct wait_truth *waits;
	struct thread_truth self;
	long epochs, steps;
	uint64_t begin;

	workload_begin(argc, argv);
	epochs = workload_number(0, 5, 1000);
	steps = workload_number(1, 20, 100000);
	gap_ns = workload_number(2, 100, 10000) * 1000000;
	waits = new_wait("next_epoch");
	open_gate(NULL, NULL);
	begin = clock_ns(CLOCK_MONOTONIC);
	self = thread_now();
	for (long epoch = 0; epoch < epochs; epoch++) {
		pthread_t thread;

		atomic_store(&ready, 0);
		if (pthread_create(&thread, NULL, loader, NULL))
			die("pthread_create");
		next_epoch(waits);
		pthread_join(thread, NULL);
		for (long i = 0; i < steps; i++)
			step();
	}
	thread_done(&self);
	return workload_end(begin);
}
