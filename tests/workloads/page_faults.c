/* Touches pages that are not there.
 *
 *	page_faults [--wait] [--linger] [THOUSANDS=100]
 *
 * Truth: `calls` of touch_pages is the number of page faults in it, at least THOUSANDS * 1000, by getrusage(). */
#include <sys/mman.h>
#include "workload.h"

#define PAGES 1000
#define PAGE_BYTES 4096

static NAMED void touch_pages(volatile char *memory)
{
	for (int i = 0; i < PAGES; i++)
		memory[i * PAGE_BYTES] = 1;
}

static long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

int main(int argc, char **argv)
{
	struct wait_truth *touched;
	struct thread_truth begin;
	long thousands, before;
	char *memory;

	workload_begin(argc, argv);
	thousands = workload_number(0, 100, 10000);
	touched = new_wait("touch_pages");
	memory = mmap(NULL, PAGES * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		die("mmap");
	if (madvise(memory, PAGES * PAGE_BYTES, MADV_NOHUGEPAGE) < 0)
		die("madvise");
	open_gate(NULL, NULL);
	begin = thread_now();
	for (long i = 0; i < thousands; i++) {
		if (madvise(memory, PAGES * PAGE_BYTES, MADV_DONTNEED) < 0)
			die("madvise");
		before = faults();
		touch_pages(memory);
		touched->calls += faults() - before;
	}
	thread_done(&begin);
	return workload_end(begin.wall_ns);
}
