/* One thread burns CPU in several functions, each its share of the time.
 *
 *	shares [--wait] [--linger] [MILLISECONDS=2000]
 *
 * Truth: never blocked; spin_one, spin_three, deep_spin (30 times on the stack), library_spin (in libshares.so, by way of
 * library_inner) and system_spin (in getrandom()) have about 1, 3, 2, 2 and 2 tenths of the CPU time. `waits` has one record per
 * function, whose `ns` are CPU time (CLOCK_THREAD_CPUTIME_ID) from before to after each call; no blocks. The lengths of the
 * calls vary, for no clock to keep step with them. */
#include "burn.h"
#include "workload.h"

#define UNIT_NS 700000
#define DEPTH 30

static char random_bytes[32768];

static NAMED void spin_one(uint64_t ns)
{
	burn(ns);
}

static NAMED void spin_three(uint64_t ns)
{
	burn(ns);
}

static NAMED void deep_spin(uint64_t ns, int depth)
{
	if (depth > 1)
		deep_spin(ns, depth - 1);
	else
		burn(ns);
	KEEP_FRAME();
}

static NAMED void thirty_deep(uint64_t ns)
{
	deep_spin(ns, DEPTH);
	KEEP_FRAME();
}

static NAMED void system_spin(uint64_t ns)
{
	uint64_t until = cpu_ns() + ns;

	while (cpu_ns() < until)
		syscall6(SYS_getrandom, (long)random_bytes, sizeof(random_bytes), 0, 0, 0, 0);
}

static const struct part {
	const char *name;
	void (*run)(uint64_t ns);
	unsigned int tenths;
} parts[] = {
	{ "spin_one", spin_one, 1 },	     { "spin_three", spin_three, 3 },	{ "deep_spin", thirty_deep, 2 },
	{ "library_spin", library_spin, 2 }, { "system_spin", system_spin, 2 },
};
#define PARTS (sizeof(parts) / sizeof(*parts))

static uint64_t vary(uint64_t ns)
{
	static uint64_t state = 88172645463325252u;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return ns / 2 + state % ns;
}

int main(int argc, char **argv)
{
	struct wait_truth *shares[PARTS];
	struct thread_truth begin;
	uint64_t until, before;
	long ms;

	workload_begin(argc, argv);
	ms = workload_number(0, 2000, 60000);
	for (size_t i = 0; i < PARTS; i++)
		shares[i] = new_wait(parts[i].name);
	open_gate(NULL, NULL);
	begin = thread_now();
	until = begin.wall_ns + (uint64_t)ms * 1000000u;
	while (clock_ns(CLOCK_MONOTONIC) < until)
		for (size_t i = 0; i < PARTS; i++) {
			before = cpu_ns();
			parts[i].run(vary(UNIT_NS * parts[i].tenths));
			shares[i]->ns += cpu_ns() - before;
			shares[i]->calls++;
		}
	thread_done(&begin);
	return workload_end(begin.wall_ns);
}
