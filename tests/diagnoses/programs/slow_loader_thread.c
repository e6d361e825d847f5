/* The main thread trains for 1 ms and then waits for its loader thread, which needs 10 ms to read an item. */
#include "diagnosis.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t loaded = PTHREAD_COND_INITIALIZER, taken = PTHREAD_COND_INITIALIZER;
static bool full;

static KEEP void read_item(void)
{
	sleep_us(10000);
}

static void *load(void *unused)
{
	for (;;) {
		read_item();
		pthread_mutex_lock(&mutex);
		while (full)
			pthread_cond_wait(&taken, &mutex);
		full = true;
		pthread_cond_signal(&loaded);
		pthread_mutex_unlock(&mutex);
	}
	return unused;
}

static KEEP void next_batch(void)
{
	pthread_mutex_lock(&mutex);
	while (!full)
		pthread_cond_wait(&loaded, &mutex);
	full = false;
	pthread_cond_signal(&taken);
	pthread_mutex_unlock(&mutex);
}

int main(void)
{
	start("loader", load, NULL);
	ready_alone();
	for (;;) {
		next_batch();
		burn_us(1000);
	}
}
