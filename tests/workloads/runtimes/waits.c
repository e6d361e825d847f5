/* Six threads that wait in six ways, and the main thread in poll(): in functions of the C library and, called back by
 * it, of the program. Built with several C libraries, for 64 and 32 bits. It runs until it is killed. */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
#define STAYS __asm__ volatile("" ::: "memory") /* no call in its place is the last thing that a function does */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static sem_t empty;
static int ends[2];

static struct timespec soon(void)
{
	struct timespec time;

	clock_gettime(CLOCK_REALTIME, &time);
	time.tv_nsec += 2000000;
	if (time.tv_nsec >= 1000000000) {
		time.tv_nsec -= 1000000000;
		time.tv_sec++;
	}
	return time;
}

static int compare(const void *a, const void *b)
{
	static unsigned calls;

	if (++calls % 64 == 0)
		usleep(300);
	return *(const int *)a - *(const int *)b;
}

NOINLINE void in_qsort(void)
{
	int numbers[300];

	for (int i = 0; i < 300; i++)
		numbers[i] = rand();
	qsort(numbers, 300, sizeof(int), compare);
	STAYS;
}

NOINLINE void in_cond(void)
{
	struct timespec time = soon();

	pthread_mutex_lock(&lock);
	pthread_cond_timedwait(&never, &lock, &time);
	pthread_mutex_unlock(&lock);
	STAYS;
}

NOINLINE void in_sleep(void)
{
	usleep(1500);
	STAYS;
}

NOINLINE void in_sem(void)
{
	struct timespec time = soon();

	sem_timedwait(&empty, &time);
	STAYS;
}

NOINLINE void in_printf(void)
{
	static FILE *file;

	if (!file) {
		file = fdopen(ends[1], "w");
		setvbuf(file, NULL, _IOFBF, 64);
	}
	fprintf(file, "%0128d %s %f\n", 1, "text", 3.25);
	fflush(file);
	usleep(500);
	STAYS;
}

NOINLINE void in_read(void)
{
	char bytes[16];

	if (read(ends[0], bytes, sizeof(bytes)) < 0)
		abort();
	STAYS;
}

NOINLINE void in_poll(void)
{
	struct pollfd none = {-1, POLLIN, 0};

	poll(&none, 1, 2);
	STAYS;
}

static void *work(void *function)
{
	for (;;)
		((void (*)(void))function)();
	return NULL;
}

int main(void)
{
	void (*functions[])(void) = {in_qsort, in_cond, in_sleep, in_sem, in_printf, in_read};
	pthread_t thread;

	if (pipe(ends) || sem_init(&empty, 0, 0))
		return 1;
	for (int i = 0; i < 6; i++)
		pthread_create(&thread, NULL, work, (void *)functions[i]);
	for (;;)
		in_poll();
}
