/* A program writes its log into a pipe whose reader is slow. */
#include "diagnosis.h"

static KEEP void write_log(int log)
{
	char line[4096] = "";

	need(write(log, line, sizeof(line)) == sizeof(line), "write");
}

int main(void)
{
	int ends[2], child;
	char line[4096];

	need(!pipe(ends), "pipe");
	child = start_process("logger");
	if (!child)
		for (;;) {
			need(read(ends[0], line, sizeof(line)) > 0, "read");
			sleep_us(10000);
		}
	for (int i = 0; i < 16; i++)
		write_log(ends[1]);
	ready((int[]){ getpid(), child, 0 });
	for (;;) {
		burn_us(200);
		write_log(ends[1]);
	}
}
