/* The main thread touches memory whose pages a slow store fills in, by userfaultfd, 3 ms each. */
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include "diagnosis.h"

#define PAGE 4096
#define PAGES 64

static void *fill(void *argument)
{
	int faults = *(int *)argument;
	static char page[PAGE] __attribute__((aligned(PAGE)));
	struct uffd_msg message;

	while (read(faults, &message, sizeof(message)) == sizeof(message)) {
		struct uffdio_copy copy = { .dst = message.arg.pagefault.address & ~(uint64_t)(PAGE - 1),
					    .src = (uintptr_t)page,
					    .len = PAGE };

		sleep_us(3000);
		need(!ioctl(faults, UFFDIO_COPY, &copy), "UFFDIO_COPY");
	}
	return NULL;
}

static KEEP void look_up(volatile char *table)
{
	for (int i = 0; i < PAGES; i++)
		table[i * PAGE]++;
}

int main(void)
{
	int faults = syscall(SYS_userfaultfd, O_CLOEXEC);
	struct uffdio_api api = { .api = UFFD_API };
	char *table = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_register range = { .range = { (uintptr_t)table, PAGES * PAGE },
					 .mode = UFFDIO_REGISTER_MODE_MISSING };

	need(faults >= 0, "userfaultfd");
	need(!ioctl(faults, UFFDIO_API, &api), "UFFDIO_API");
	need(!ioctl(faults, UFFDIO_REGISTER, &range), "UFFDIO_REGISTER");
	start("store", fill, &faults);
	ready_alone();
	for (;;) {
		look_up(table);
		madvise(table, PAGES * PAGE, MADV_DONTNEED);
	}
}
