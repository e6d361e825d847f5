/* The main thread waits for a line of a process that somebody has stopped (SIGSTOP). */
#include "diagnosis.h"

static KEEP void read_progress(int source)
{
	char line[16];

	need(read(source, line, sizeof(line)) > 0, "read");
}

static void *report(void *unused)
{
	for (;;) {
		burn_us(100);
		sleep_us(10000);
	}
	return unused;
}

int main(void)
{
	int ends[2], child;

	need(!pipe(ends), "pipe");
	child = start_process("simulation");
	if (!child)
		for (;;) {
			burn_us(1000);
			need(write(ends[1], "step\n", 5) == 5, "write");
			sleep_us(10000);
		}
	read_progress(ends[0]);
	kill(child, SIGSTOP);
	start("report", report, NULL);
	ready((int[]){ getpid(), child, 0 });
	for (;;)
		read_progress(ends[0]);
}
