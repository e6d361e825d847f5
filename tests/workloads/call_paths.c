/* Many ways to one wait, each of which must keep its own time.
 *
 *	call_paths [--wait] [--linger] [near|far=near] [ROUNDS=4]
 *
 * Truth: in each round, in an order that changes: 1,000 functions caller_000 … caller_999, all with the same frame, so that the
 * stack pointer in the wait is the same; recurse 1 to 60 deep; and, as a callback of the C library's qsort, 16
 * functions compare_0 … compare_f. Each calls leaf → nanosleep, caller_NNN for 50 µs + NNN ns × 100, the others for
 * 100 µs; each is called once, twice or three times in a row. `waits` has one record per path: `caller_NNN`, `recurse/DEPTH`, `compare_N`; blocks are exact.
 *
 * With `far` the leaf has a frame of 2 KiB, which looks the same whoever called it: the first word that tells the paths
 * apart is behind it. */
#include "workload.h"

#define DEPTH 60

struct path {
	struct wait_truth *w;
	long ns;
};

static NAMED long leaf_near(struct path *path)
{
	struct timespec length = { 0, path->ns };
	struct mark mark = wait_begins();

	nanosleep(&length, NULL);
	wait_ends(path->w, mark);
	return 1;
}

static NAMED long leaf_far(struct path *path)
{
	char text[2048];
	long result;

	memset(text, 'x', sizeof(text));
	__asm__ volatile("" : : "r"(text) : "memory");
	result = leaf_near(path);
	__asm__ volatile("" : : "r"(text) : "memory");
	return result + text[0];
}

static long (*leaf)(struct path *) = leaf_near;

#define CALLER(n)                                                                                                      \
	static NAMED long caller_##n(struct path *path)                                                                \
	{                                                                                                              \
		long result = leaf(path);                                                                              \
                                                                                                                       \
		KEEP_FRAME();                                                                                          \
		return result + 1;                                                                                     \
	}
#define NAME(n) caller_##n,
/* clang-format off */
#define TEN(macro, n) \
	macro(n##0) macro(n##1) macro(n##2) macro(n##3) macro(n##4) \
	macro(n##5) macro(n##6) macro(n##7) macro(n##8) macro(n##9)
#define HUNDRED(macro, n) \
	TEN(macro, n##0) TEN(macro, n##1) TEN(macro, n##2) TEN(macro, n##3) TEN(macro, n##4) \
	TEN(macro, n##5) TEN(macro, n##6) TEN(macro, n##7) TEN(macro, n##8) TEN(macro, n##9)
#define THOUSAND(macro) \
	HUNDRED(macro, 0) HUNDRED(macro, 1) HUNDRED(macro, 2) HUNDRED(macro, 3) HUNDRED(macro, 4) \
	HUNDRED(macro, 5) HUNDRED(macro, 6) HUNDRED(macro, 7) HUNDRED(macro, 8) HUNDRED(macro, 9)
#define SIXTEEN(macro) \
	macro(0) macro(1) macro(2) macro(3) macro(4) macro(5) macro(6) macro(7) \
	macro(8) macro(9) macro(a) macro(b) macro(c) macro(d) macro(e) macro(f)
/* clang-format on */
THOUSAND(CALLER)
static long (*const callers[])(struct path *) = { THOUSAND(NAME) };
#define CALLERS 1000

static NAMED long recurse(long depth, struct path *path)
{
	long result;

	result = depth > 1 ? recurse(depth - 1, path) : leaf(path);
	KEEP_FRAME();
	return result + 1;
}

#define COMPARE(n)                                                                                                     \
	static NAMED int compare_##n(const void *path, const void *unused)                                             \
	{                                                                                                              \
		(void)unused;                                                                                          \
		leaf(*(struct path *const *)path);                                                                     \
		return 0;                                                                                              \
	}
#define COMPARE_NAME(n) compare_##n,
SIXTEEN(COMPARE)
static int (*const compares[])(const void *, const void *) = { SIXTEEN(COMPARE_NAME) };
#define COMPARES 16

#define PATHS (CALLERS + DEPTH + COMPARES)

static struct path paths[PATHS];

static void name_paths(void)
{
	char name[NAME_LEN];

	for (int i = 0; i < PATHS; i++) {
		if (i < CALLERS)
			snprintf(name, sizeof(name), "caller_%03d", i);
		else if (i < CALLERS + DEPTH)
			snprintf(name, sizeof(name), "recurse/%d", i - CALLERS + 1);
		else
			snprintf(name, sizeof(name), "compare_%x", i - CALLERS - DEPTH);
		paths[i].w = new_wait(name);
		paths[i].ns = i < CALLERS ? 50000 + i * 100 : 100000;
	}
}

/* Out of line, for the stack pointer to be the same in all callers. */
static NAMED void go(int i)
{
	struct path *two[] = { &paths[i], &paths[i] }; /* one comparison */

	if (i < CALLERS)
		callers[i](&paths[i]);
	else if (i < CALLERS + DEPTH)
		recurse(i - CALLERS + 1, &paths[i]);
	else
		qsort(two, 2, sizeof(*two), compares[i - CALLERS - DEPTH]);
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	struct thread_truth begin;
	long rounds;

	workload_begin(argc, argv);
	if (workload_argc > 0 && strcmp(workload_argv[0], "far") == 0)
		leaf = leaf_far;
	rounds = workload_number(1, 4, 1000);
	prctl(PR_SET_TIMERSLACK, 1);
	name_paths();
	open_gate(NULL, NULL);
	begin = thread_now();
	for (long round = 0; round < rounds; round++)
		for (long i = 0; i < PATHS; i++) {
			/* Steps that share no factor with 1076. */
			int path = (int)((i * (round % 100 * 2 + 7) + round * 131) % PATHS);

			for (int again = 0; again <= i % 3; again++)
				go(path);
		}
	thread_done(&begin);
	return workload_end(begin.wall_ns);
}
