/* Threads call functions of the stand-in for CUDA's runtime as fast as they can, with no device.
 *
 *	call_storm [--wait] [--linger] [SECONDS=3] [THREADS=1]
 *
 * Most calls are cudaFree(NULL), of which there are 256 for each cudaMalloc, and 4,096 for each cudaMemcpy: all fail at
 * once. Truth: prints the number of calls of each, and how many rounds of the first there were in each tenth of a second. */
#include <pthread.h>
#include "standin_cuda.h"
#include "workload.h"

#define MALLOC_EACH 256
#define COPY_EACH 4096

#define MOST_TENTHS 600

static uint64_t begin, seconds;
static atomic_long frees, mallocs, copies, tenths[MOST_TENTHS];

static void *storm(void *unused)
{
	static char from[64], to[64];
	uint64_t passed = 0;

	for (long i = 1; passed < seconds * 1000000000; i++) {
		void *memory = NULL;

		cudaFree(memory);
		if (i % MALLOC_EACH == 0) {
			cudaMalloc(&memory, 64);
			atomic_fetch_add(&mallocs, 1);
			atomic_fetch_add(&frees, MALLOC_EACH);
			passed = clock_ns(CLOCK_MONOTONIC) - begin;
			if (passed / 100000000 < MOST_TENTHS)
				atomic_fetch_add(&tenths[passed / 100000000], MALLOC_EACH);
		}
		if (i % COPY_EACH == 0) {
			cudaMemcpy(to, from, sizeof(to), 0);
			atomic_fetch_add(&copies, 1);
		}
	}
	(void)unused;
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[16];
	long number;

	workload_begin(argc, argv);
	seconds = workload_number(0, 3, MOST_TENTHS / 10);
	number = workload_number(1, 1, 16);
	open_gate(NULL, NULL);
	begin = clock_ns(CLOCK_MONOTONIC);
	for (long i = 0; i < number; i++)
		if (pthread_create(&threads[i], NULL, storm, NULL))
			die("pthread_create");
	for (long i = 0; i < number; i++)
		pthread_join(threads[i], NULL);
	printf("{\"frees\": %ld, \"mallocs\": %ld, \"copies\": %ld, \"tenths\": [", frees, mallocs, copies);
	for (long i = 0; i < (long)seconds * 10; i++)
		printf("%s%ld", i ? ", " : "", tenths[i]);
	printf("]}\n");
	return 0;
}
