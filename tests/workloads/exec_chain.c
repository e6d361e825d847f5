/* One process that becomes another program again and again.
 *
 *	exec_chain [--wait] [--linger] [LINKS=11] [WAITS=1]
 *
 * Truth: LINKS programs, one after the other, exec_chain and exec_chain_other in turn, the first and the last being
 * exec_chain; each waits WAITS times for 5 ms in link_even → doze or link_odd → doze. Compiled twice: with OTHER it is
 * exec_chain_other, whose frames have other sizes. */
#include <fcntl.h>
#include "workload.h"

#ifdef OTHER
#define LINK link_odd
#define LOCALS 40
#else
#define LINK link_even
#define LOCALS 3
#endif

struct totals {
	long links, left, times;
	uint64_t begin;
	struct wait_truth waits[2];
};

static NAMED void doze(struct wait_truth *w)
{
	struct timespec length = { 0, 5000000 };
	struct mark mark = wait_begins();

	nanosleep(&length, NULL);
	wait_ends(w, mark);
}

static NAMED long LINK(struct wait_truth *w)
{
	volatile long locals[LOCALS];

	locals[LOCALS - 1] = 1;
	doze(w);
	return locals[LOCALS - 1];
}

/* What the links know of each other is in a file without a name. */
static _Noreturn void become_next(struct totals *totals, int fd, bool linger)
{
	const char *next = totals->left % 2 ? "exec_chain" : "exec_chain_other";
	char path[4096] = "", number[16];
	char *slash;

	if (pwrite(fd, totals, sizeof(*totals), 0) != sizeof(*totals))
		die("totals");
	if (readlink("/proc/self/exe", path, sizeof(path) - 32) < 0 || !(slash = strrchr(path, '/')))
		die("/proc/self/exe");
	strcpy(slash + 1, next);
	snprintf(number, sizeof(number), "%d", fd);
	if (linger)
		execl(path, next, "--linger", "link", number, NULL);
	else
		execl(path, next, "link", number, NULL);
	die(path);
}

static int print_truth(const struct totals *totals)
{
	for (int i = 0; i < 2; i++) {
		struct wait_truth *w = new_wait(i ? "link_odd" : "link_even");

		w->calls = totals->waits[i].calls;
		w->blocks = totals->waits[i].blocks;
		w->ns = totals->waits[i].ns;
	}
	return workload_end(totals->begin);
}

int main(int argc, char **argv)
{
	struct totals totals = { 0 };
	bool linger = false;
	int fd;

	for (int i = 1; i < argc; i++)
		linger |= strcmp(argv[i], "--linger") == 0;
	workload_begin(argc, argv);
	if (workload_argc == 2 && strcmp(workload_argv[0], "link") == 0) {
		fd = atoi(workload_argv[1]);
		if (pread(fd, &totals, sizeof(totals), 0) != sizeof(totals))
			die("totals");
	} else {
		totals.links = totals.left = 2 * ((workload_number(0, 11, 1000) - 1) / 2) + 1; /* odd */
		totals.times = workload_number(1, 1, 1000);
		fd = open("/tmp", O_TMPFILE | O_RDWR, 0600);
		if (fd < 0)
			die("/tmp");
		open_gate(NULL, NULL);
		totals.begin = clock_ns(CLOCK_MONOTONIC);
	}
	for (long i = 0; i < totals.times; i++)
		LINK(&totals.waits[(totals.links - totals.left) % 2]);
	if (--totals.left > 0)
		become_next(&totals, fd, linger);
	return print_truth(&totals);
}
