/* What the workloads share: the start gate, the clocks around each wait, and the truth that they print.
 *
 * A workload prints one line of JSON when it is ready (with --wait it then reads one byte from standard input before it
 * starts), does its bounded work, prints one line of JSON with what it measured itself, and ends; with --linger only when
 * standard input closes. tests/workloads/README.md describes both lines.
 *
 * System calls that are measured are made in line: the waiting function itself is then the innermost user frame, and no
 * frame pointer of the C library's is needed to find its caller. */
#ifndef STALLSCOPE_WORKLOAD_H
#define STALLSCOPE_WORKLOAD_H

#include <errno.h>
#include <signal.h>
#ifndef __cplusplus
#include <stdatomic.h> /* C++ has its own */
#endif
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <linux/futex.h>
#include "syscall6.h"

#define LIMIT_SECONDS 120 /* nothing outlives this, whatever happens */
#define NAME_LEN 64

#ifdef __cplusplus
extern "C" {
#endif

/* One function's waits in one thread. `ns` is the sum of the times around the system call (CLOCK_MONOTONIC); `blocks`
 * how often the kernel took the thread off its CPU because it waited (ru_nvcsw), at most once or twice per call. */
struct wait_truth {
	char function[NAME_LEN];
	int pid, tid;
	long calls, blocks;
	uint64_t ns, longest;
};

/* One thread from start to finish of its work. `runnable_ns` is the kernel's own account (schedstat), -1 without one. */
struct thread_truth {
	char name[NAME_LEN];
	int pid, tid;
	uint64_t wall_ns, cpu_ns;
	long long runnable_ns;
	long voluntary, involuntary;
};

/* The workload's own arguments: what follows --wait and --linger. */
extern int workload_argc;
extern char **workload_argv;

/* Reads --wait and --linger, sets the limit. Call it first. */
void workload_begin(int argc, char **argv);

/* The i-th argument as a number from 1 to `most`, or `otherwise` where there is none. */
long workload_number(int i, long otherwise, long most);

/* In a forked child, first: it dies with its parent and has its own limit. */
void workload_child(void);

/* Where threads and processes that exist before the start wait for it. */
void await_start(void);

/* Says who is there (`pids` and `tids` end with 0; NULL: only the caller), waits for the byte, lets everybody start. */
void open_gate(const int *pids, const int *tids);

/* A record that the calling thread adds to, printed at the end. */
struct wait_truth *new_wait(const char *function);

/* The calling thread's clocks, and the record of what it did since then. */
struct thread_truth thread_now(void);
void thread_done(const struct thread_truth *begin);

/* How long a thread that works in rounds waits this time: 1 to 3 ms, and once everybody is to be held still, for ever.
 * Ask before each wait. */
long stay_ns(void);

/* Holds these threads still (their ids end with 0), each where it waits, and returns when all of them sleep. */
void hold_still(const int *tids);

/* Adds clock readings of the program to the truth that is printed, as "times". They have to stay there. */
void workload_times(const uint64_t *times, long number);

/* Prints the truth, lingers, and is main's return value. `begin` is when the gate opened (CLOCK_MONOTONIC). */
int workload_end(uint64_t begin);

/* Prints errno's cause and exits with 1. */
void die(const char *what) __attribute__((noreturn));

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline long voluntary_switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw;
}

/* The clocks before a wait. */
struct mark {
	uint64_t ns;
	long switches;
};

static inline struct mark wait_begins(void)
{
	struct mark mark = { 0, voluntary_switches() };

	mark.ns = clock_ns(CLOCK_MONOTONIC);
	return mark;
}

static inline void wait_ends(struct wait_truth *w, struct mark mark)
{
	w->ns += clock_ns(CLOCK_MONOTONIC) - mark.ns;
	w->blocks += voluntary_switches() - mark.switches;
	w->calls++;
}

/* The same, and notes the longest. Not for every workload: it may change what is on the stack of a wait. */
static inline void call_ends(struct wait_truth *w, struct mark mark)
{
	uint64_t before = w->ns;

	wait_ends(w, mark);
	if (w->ns - before > w->longest)
		w->longest = w->ns - before;
}

/* Touches what the measurement will touch, so that no page fault falls into it. For a record that is still empty. */
static inline void warm_up(struct wait_truth *w)
{
	wait_ends(w, wait_begins());
	w->ns = 0;
	w->blocks = w->calls = 0;
}

/* A system call in line, its time and its switches added to `w`. */
static inline __attribute__((always_inline)) long measured(struct wait_truth *w, long number, long a, long b, long c,
							   long d, long e, long f)
{
	struct mark mark = wait_begins();
	long result = syscall6(number, a, b, c, d, e, f);

	wait_ends(w, mark);
	return result;
}

static inline __attribute__((always_inline)) void measured_sleep(struct wait_truth *w, long ns)
{
	struct timespec length = { ns / 1000000000, ns % 1000000000 };

	measured(w, SYS_nanosleep, (long)&length, 0, 0, 0, 0, 0);
}

#ifdef __cplusplus
}
#endif

#endif
