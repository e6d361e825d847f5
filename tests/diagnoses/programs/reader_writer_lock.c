/* Four readers of a table stand behind a writer that holds its lock for 5 of 6 ms. */
#include "diagnosis.h"

static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;

static KEEP void look_up(void)
{
	pthread_rwlock_rdlock(&table);
	pthread_rwlock_unlock(&table);
	burn_us(20);
}

static KEEP void rebuild(void)
{
	pthread_rwlock_wrlock(&table);
	sleep_us(5000);
	pthread_rwlock_unlock(&table);
}

static void *read_table(void *unused)
{
	for (;;) {
		look_up();
		sleep_us(100);
	}
	return unused;
}

static void *write_table(void *unused)
{
	for (;;) {
		rebuild();
		sleep_us(1000);
	}
	return unused;
}

int main(void)
{
	for (int i = 0; i < 4; i++)
		start("reader", read_table, NULL);
	start("writer", write_table, NULL);
	ready_alone();
	poll(NULL, 0, -1);
}
