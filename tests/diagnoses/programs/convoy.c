/* Eight threads pass through one mutex, from two places, for everything that they do. */
#include "diagnosis.h"

static pthread_mutex_t allocator = PTHREAD_MUTEX_INITIALIZER;

static KEEP void allocate(void)
{
	pthread_mutex_lock(&allocator);
	sleep_us(500);
	pthread_mutex_unlock(&allocator);
}

static KEEP void release(void)
{
	pthread_mutex_lock(&allocator);
	sleep_us(400);
	pthread_mutex_unlock(&allocator);
}

static void *work(void *unused)
{
	for (;;) {
		allocate();
		release();
	}
	return unused;
}

int main(void)
{
	for (int i = 0; i < 8; i++) {
		char name[16];

		snprintf(name, sizeof(name), "worker-%d", i);
		start(name, work, NULL);
	}
	ready_alone();
	poll(NULL, 0, -1);
}
