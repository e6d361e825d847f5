/* The main thread starts a program for each step and waits for its end. */
#include "diagnosis.h"

static KEEP void run_tool(void)
{
	int child = start_process("tool");

	if (!child) {
		sleep_us(5000);
		burn_us(1000);
		_exit(0);
	}
	need(waitpid(child, NULL, 0) == child, "waitpid");
}

int main(void)
{
	ready_alone();
	for (;;)
		run_tool();
}
