/* Two processes wait for ever in open() of a FIFO that nobody reads; beside them three threads contend for a lock. */
#include <sys/stat.h>
#include "diagnosis.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static KEEP void write_to_cache(void)
{
	pthread_mutex_lock(&mutex);
	sleep_us(2000);
	pthread_mutex_unlock(&mutex);
}

static void *work(void *unused)
{
	for (;;)
		write_to_cache();
	return unused;
}

int main(void)
{
	char name[] = "/tmp/stallscope-fifo-XXXXXX";
	int pids[4] = { getpid() };

	need(mkdtemp(name) != NULL, "mkdtemp");
	need(!chdir(name), "chdir");
	need(!mkfifo("fifo", 0600), "mkfifo");
	for (int i = 1; i <= 2; i++) {
		pids[i] = start_process("reporter");
		if (!pids[i]) {
			open("fifo", O_WRONLY);
			return 0;
		}
	}
	sleep_us(300000);
	unlink("fifo");
	rmdir(name);
	for (int i = 0; i < 3; i++)
		start("worker", work, NULL);
	ready(pids);
	poll(NULL, 0, -1);
}
