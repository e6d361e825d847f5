/* Three processes do all of their work under one lock of a file. */
#include <sys/file.h>
#include "diagnosis.h"

static KEEP void update_index(int file)
{
	need(!flock(file, LOCK_EX), "flock");
	sleep_us(3000);
	need(!flock(file, LOCK_UN), "flock");
}

int main(void)
{
	char name[] = "/tmp/stallscope-flock-XXXXXX";
	int pids[4] = { 0 };

	close(mkstemp(name));
	for (int i = 0; i < 3; i++) {
		pids[i] = start_process(NULL);
		if (!pids[i]) {
			int file = open(name, O_RDWR | O_CLOEXEC);

			need(file >= 0, name);
			for (;;)
				update_index(file);
		}
	}
	sleep_us(50000);
	unlink(name);
	ready(pids);
	poll(NULL, 0, -1);
}
