/* Eight threads of a pool have no work; two others compute all the time, and the main thread waits for these. */
#include "diagnosis.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;

static void *park(void *unused)
{
	pthread_mutex_lock(&mutex);
	for (;;)
		pthread_cond_wait(&work, &mutex);
	return unused;
}

static void *compute(void *unused)
{
	for (;;)
		burn_us(20000);
	return unused;
}

int main(void)
{
	pthread_t last;
	char name[16];

	for (int i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "parked-%d", i);
		start(name, park, NULL);
	}
	start("cruncher-0", compute, NULL);
	last = start("cruncher-1", compute, NULL);
	ready_alone();
	pthread_join(last, NULL);
}
