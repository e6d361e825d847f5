/* What the programs in C share: how one tells that its trouble has begun, and that none outlives its test.
 *
 * tests/diagnoses/README.md has the rules. Functions whose names a sentence has to tell are never inlined. */
#ifndef STALLSCOPE_DIAGNOSIS_H
#define STALLSCOPE_DIAGNOSIS_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KEEP __attribute__((noinline))
#define LIMIT_SECONDS 60

static inline void need(bool condition, const char *what)
{
	if (condition)
		return;
	perror(what);
	exit(1);
}

/* Prints the processes to trace, the list ends with 0. */
static inline void ready(const int *pids)
{
	alarm(LIMIT_SECONDS);
	for (; *pids; pids++)
		printf("%d ", *pids);
	printf("\n");
	fflush(stdout);
}

static inline void ready_alone(void)
{
	ready((int[]){ getpid(), 0 });
}

static inline void sleep_us(long us)
{
	struct timespec length = { us / 1000000, us % 1000000 * 1000 };

	nanosleep(&length, NULL);
}

/* CPU time of the calling thread. */
static inline void burn_us(long us)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000000 + (now.tv_nsec - begin.tv_nsec) / 1000 < us);
}

static inline pthread_t start(const char *name, void *(*work)(void *), void *argument)
{
	pthread_t thread;

	errno = pthread_create(&thread, NULL, work, argument);
	need(!errno, "pthread_create");
	pthread_setname_np(thread, name);
	return thread;
}

/* Like fork; the child dies with its parent and is called `name`. */
static inline int start_process(const char *name)
{
	int pid = fork();

	need(pid >= 0, "fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (name)
			prctl(PR_SET_NAME, name);
		alarm(LIMIT_SECONDS);
	}
	return pid;
}

#endif
