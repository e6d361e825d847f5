/* Processes that need one lock, in shared memory, which another process holds for long.
 *
 *	lock_holder [--wait] [--linger] [WAITERS=8] [ROUNDS=40] [HOLD_US=5000]
 *
 * Truth: each process "waiter-I" takes the lock again and again, in take_lock(), and gives it back at once. Process
 * "holder" keeps it in hold(), on a core, for HOLD_US ROUNDS times. What the others wait in take_lock() they wait for it,
 * even when one of them woke them: that one had waited for it, too. */
#include <sys/mman.h>
#include <sys/wait.h>
#include "burn.h"
#include "workload.h"

#define MAX_WAITERS 32

struct shared {
	atomic_int lock; /* 0: free, 1: taken, 2: taken, and somebody may wait */
	atomic_int over;
};

static struct shared *shared;

/* As in "Futexes Are Tricky" (U. Drepper, 2011): mutex2. */
static NAMED void take_lock(struct wait_truth *w)
{
	int free = 0;

	if (!atomic_compare_exchange_strong(&shared->lock, &free, 1))
		while (atomic_exchange(&shared->lock, 2))
			measured(w, SYS_futex, (long)&shared->lock, FUTEX_WAIT, 2, 0, 0, 0);
	KEEP_FRAME();
}

static NAMED void give_lock(void)
{
	if (atomic_exchange(&shared->lock, 0) == 2)
		syscall6(SYS_futex, (long)&shared->lock, FUTEX_WAKE, 1, 0, 0, 0);
	KEEP_FRAME();
}

static NAMED void hold(long us)
{
	burn(us * 1000);
	KEEP_FRAME();
}

static NAMED void rest(struct wait_truth *w, long ns)
{
	measured_sleep(w, ns);
	KEEP_FRAME();
}

static void holder(long rounds, long us)
{
	struct wait_truth *waits = new_wait("take_lock"), *rests = new_wait("rest");
	struct thread_truth begin;

	prctl(PR_SET_NAME, "holder");
	await_start();
	begin = thread_now();
	for (long i = 0; i < rounds; i++) {
		take_lock(waits);
		hold(us);
		give_lock();
		rest(rests, 300000);
	}
	atomic_store(&shared->over, 1);
	thread_done(&begin);
}

static void waiter(int i)
{
	struct wait_truth *waits = new_wait("take_lock"), *rests = new_wait("rest");
	struct thread_truth begin;
	char name[16];

	snprintf(name, sizeof(name), "waiter-%d", i);
	prctl(PR_SET_NAME, name);
	await_start();
	begin = thread_now();
	while (!atomic_load(&shared->over)) {
		take_lock(waits);
		give_lock();
		rest(rests, 500000);
	}
	thread_done(&begin);
}

int main(int argc, char **argv)
{
	int pids[MAX_WAITERS + 2] = { 0 };
	long waiters, rounds, us;
	uint64_t begin;

	workload_begin(argc, argv);
	waiters = workload_number(0, 8, MAX_WAITERS);
	rounds = workload_number(1, 40, 100000);
	us = workload_number(2, 5000, 1000000);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		die("mmap");
	for (int i = 0; i <= waiters; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			die("fork");
		if (pids[i] == 0) {
			workload_child();
			if (i == 0)
				holder(rounds, us);
			else
				waiter(i);
			_exit(0);
		}
	}
	open_gate(pids, pids);
	begin = clock_ns(CLOCK_MONOTONIC);
	for (int i = 0; i <= waiters; i++) {
		int status;

		if (waitpid(pids[i], &status, 0) != pids[i] || status != 0) {
			fprintf(stderr, "lock_holder: process %d failed\n", i);
			return 1;
		}
	}
	return workload_end(begin);
}
