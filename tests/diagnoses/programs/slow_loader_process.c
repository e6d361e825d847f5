/* The main thread reads batches from a worker process that computes each for 10 ms; a helper thread that was never
 * needed is parked beside it. */
#include "diagnosis.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

static void *help(void *unused)
{
	pthread_mutex_lock(&mutex);
	for (;;)
		pthread_cond_wait(&never, &mutex);
	return unused;
}

static KEEP void decode_sample(void)
{
	burn_us(10000);
}

static KEEP void next_batch(int source)
{
	char batch[512];

	need(read(source, batch, sizeof(batch)) == sizeof(batch), "read");
}

int main(void)
{
	int ends[2], child;
	char batch[512] = "";

	need(!pipe(ends), "pipe");
	child = start_process("loader");
	if (!child)
		for (;;) {
			decode_sample();
			need(write(ends[1], batch, sizeof(batch)) == sizeof(batch), "write");
		}
	start("helper", help, NULL);
	ready((int[]){ getpid(), child, 0 });
	for (;;)
		next_batch(ends[0]);
}
