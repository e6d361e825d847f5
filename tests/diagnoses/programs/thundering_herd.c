/* The main thread wakes all of sixteen consumers for each item; one gets it, and all go back to the same lock. */
#include "diagnosis.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t item = PTHREAD_COND_INITIALIZER;
static int items;

static KEEP void take_item(void)
{
	pthread_mutex_lock(&mutex);
	while (!items)
		pthread_cond_wait(&item, &mutex);
	items--;
	burn_us(50);
	pthread_mutex_unlock(&mutex);
}

static void *consume(void *unused)
{
	for (;;)
		take_item();
	return unused;
}

static KEEP void offer_item(void)
{
	pthread_mutex_lock(&mutex);
	items++;
	pthread_cond_broadcast(&item);
	pthread_mutex_unlock(&mutex);
}

int main(void)
{
	for (int i = 0; i < 16; i++)
		start("consumer", consume, NULL);
	ready_alone();
	for (;;) {
		offer_item();
		burn_us(100);
		sleep_us(900);
	}
}
