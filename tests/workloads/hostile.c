/* Names that try to break out of a page, a terminal and a file format.
 *
 *	hostile [--wait] [--linger] [ROUNDS=20]
 *
 * Truth: the command line begins with `<script>alert(1)</script>;x` and the process is called by its first 15 bytes; one
 * thread per name in `thread_names` sleeps ROUNDS times 5 ms in a function whose symbol is `quote"amp&<b>` and 5 ms in one
 * whose symbol is `semi;colon'</g>` (hostile.syms: objcopy renames them after the compiler is done). */
#include <pthread.h>
#include <sched.h>
#include "workload.h"

#define FULL_NAME "<script>alert(1)</script>;x"

static char *const thread_names[] = {
	"\x1b[31mred\x1b[0m",  /* a terminal's colour */
	"line\nbreak;x 99",    /* a folded line of its own */
	"\xe2\x80\xaegnp.exe", /* right-to-left override */
	"\"'`&amp;<!--",       /* markup */
	"\xff\xfe bad utf-8",  "]]></title>\t\\",
};
#define THREADS (sizeof(thread_names) / sizeof(*thread_names))

static long rounds;
static atomic_int tids[THREADS + 2];

NAMED void hostile_quote(struct wait_truth *w);
NAMED void hostile_semicolon(struct wait_truth *w);

void hostile_quote(struct wait_truth *w)
{
	measured_sleep(w, 5000000);
	KEEP_FRAME();
}

void hostile_semicolon(struct wait_truth *w)
{
	measured_sleep(w, 5000000);
	KEEP_FRAME();
}

static void *sleeper(void *argument)
{
	size_t i = (size_t)argument;
	struct wait_truth *quote, *semicolon;
	struct thread_truth begin;

	prctl(PR_SET_NAME, thread_names[i]);
	quote = new_wait("quote\"amp&<b>");
	semicolon = new_wait("semi;colon'</g>");
	atomic_store(&tids[i + 1], quote->tid);
	await_start();
	begin = thread_now();
	for (long round = 0; round < rounds; round++) {
		hostile_quote(quote);
		hostile_semicolon(semicolon);
	}
	thread_done(&begin);
	return NULL;
}

/* The command line can only be chosen by whoever starts a program: so it starts itself again. */
static void take_full_name(char **argv)
{
	if (strcmp(argv[0], FULL_NAME) == 0)
		return;
	argv[0] = FULL_NAME;
	execv("/proc/self/exe", argv);
	die("/proc/self/exe");
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	int ready[THREADS + 2] = { getpid() };
	uint64_t begin;

	take_full_name(argv);
	program_invocation_short_name = "hostile"; /* for our own messages and the truth */
	prctl(PR_SET_NAME, FULL_NAME);
	workload_begin(argc, argv);
	rounds = workload_number(0, 20, 10000);
	for (size_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, sleeper, (void *)i))
			die("pthread_create");
	for (size_t i = 1; i <= THREADS; i++)
		while (!(ready[i] = atomic_load(&tids[i])))
			sched_yield();
	open_gate(NULL, ready);
	begin = clock_ns(CLOCK_MONOTONIC);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return workload_end(begin);
}
