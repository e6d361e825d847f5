/* Two threads take two locks in opposite order and stand still for ever; a third one works. */
#include "diagnosis.h"

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;

static KEEP void move_left(void)
{
	pthread_mutex_lock(&a);
	pthread_barrier_wait(&both);
	pthread_mutex_lock(&b);
}

static KEEP void move_right(void)
{
	pthread_mutex_lock(&b);
	pthread_barrier_wait(&both);
	pthread_mutex_lock(&a);
}

static void *left(void *unused)
{
	move_left();
	return unused;
}

static void *right(void *unused)
{
	move_right();
	return unused;
}

static void *work(void *unused)
{
	for (;;) {
		burn_us(1000);
		sleep_us(2000);
	}
	return unused;
}

int main(void)
{
	pthread_t thread;

	pthread_barrier_init(&both, NULL, 2);
	thread = start("left", left, NULL);
	start("right", right, NULL);
	start("worker", work, NULL);
	sleep_us(300000);
	ready_alone();
	pthread_join(thread, NULL);
}
