/* The main thread looks every millisecond whether a thread has finished that needs long. */
#include <stdatomic.h>
#include "diagnosis.h"

static atomic_bool finished;

static void *compute(void *unused)
{
	while (!finished)
		burn_us(20000);
	return unused;
}

static KEEP void wait_until_finished(void)
{
	while (!finished)
		sleep_us(1000);
}

int main(void)
{
	start("compute", compute, NULL);
	ready_alone();
	wait_until_finished();
}
