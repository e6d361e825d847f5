/* The main thread is gone; what it leaves to another thread is to free the memory of the process.
 *
 *	last_thread [--wait] [--linger] [MEGABYTES=256]
 *
 * Truth: none of its own; whoever waits for the process has its CPU time from wait4(2). A large part of that is used after
 * the last thread has begun to exit. */
#include <pthread.h>
#include <sys/mman.h>
#include "workload.h"

static long megabytes;

static void *work(void *nothing)
{
	char *memory = mmap(NULL, megabytes << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)nothing;
	if (memory == MAP_FAILED)
		die("mmap");
	madvise(memory, megabytes << 20, MADV_NOHUGEPAGE);
	for (long i = 0; i < megabytes << 20; i += 4096)
		memory[i] = 1;
	_exit(0);
}

int main(int argc, char **argv)
{
	pthread_t thread;

	workload_begin(argc, argv);
	megabytes = workload_number(0, 256, 4096);
	open_gate(NULL, NULL);
	if (pthread_create(&thread, NULL, work, NULL))
		die("pthread_create");
	pthread_exit(NULL);
}
