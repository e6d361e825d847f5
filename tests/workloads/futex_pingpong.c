/* Two threads take turns through one futex word.
 *
 *	futex_pingpong [--wait] [--linger] [ROUNDS=2000]
 *
 * Truth: thread "ping" waits in ping(), thread "pong" in pong(); `blocks` says how many of the futex calls really waited
 * (the others found the turn already theirs). Main only joins. */
#include <pthread.h>
#include <sched.h>
#include "workload.h"

static long rounds;
static atomic_int turn; /* 0: ping's, 1: pong's */
static atomic_int player_tids[2];

static inline __attribute__((always_inline)) void play(struct wait_truth *w, int mine)
{
	while (atomic_load(&turn) != mine)
		measured(w, SYS_futex, (long)&turn, FUTEX_WAIT_PRIVATE, !mine, 0, 0, 0);
	atomic_store(&turn, !mine);
	syscall6(SYS_futex, (long)&turn, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}

static NAMED void ping(struct wait_truth *w)
{
	play(w, 0);
	KEEP_FRAME();
}

static NAMED void pong(struct wait_truth *w)
{
	play(w, 1);
	KEEP_FRAME();
}

static void *player(void *name)
{
	bool is_pong = strcmp(name, "pong") == 0;
	struct wait_truth *w = new_wait(name);
	struct thread_truth begin;

	prctl(PR_SET_NAME, name);
	atomic_store(&player_tids[is_pong], w->tid);
	await_start();
	begin = thread_now();
	for (long i = 0; i < rounds; i++)
		(is_pong ? pong : ping)(w);
	thread_done(&begin);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[2];
	int tids[4] = { getpid() };
	uint64_t begin;

	workload_begin(argc, argv);
	rounds = workload_number(0, 2000, 10000000);
	if (pthread_create(&threads[0], NULL, player, "ping") || pthread_create(&threads[1], NULL, player, "pong"))
		die("pthread_create");
	for (int i = 0; i < 2; i++)
		while (!(tids[i + 1] = atomic_load(&player_tids[i])))
			sched_yield();
	open_gate(NULL, tids);
	begin = clock_ns(CLOCK_MONOTONIC);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	return workload_end(begin);
}
