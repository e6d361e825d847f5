/* What the children of `fork_storm --exec` become.
 *
 *	storm_child FD
 *
 * Truth: one sleep of 1 ms in exec_child_sleep(), reported to FD as a struct wait_truth. */
#include "workload.h"

static NAMED void exec_child_sleep(struct wait_truth *w)
{
	measured_sleep(w, 1000000);
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	struct wait_truth mine = { 0 };

	alarm(LIMIT_SECONDS);
	if (argc != 2)
		return 2;
	warm_up(&mine);
	exec_child_sleep(&mine);
	return write(atoi(argv[1]), &mine, sizeof(mine)) != sizeof(mine);
}
