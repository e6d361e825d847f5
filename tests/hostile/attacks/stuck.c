/* A process of which some memory never comes: stuck HOW WHERE, where HOW is
 *
 *	stack	threads sleep with their callers' frames there
 *	args	its arguments and environment are there
 *	lock	a reader waits for it with the lock of the address space, and a writer behind that one
 *	hold	only the reader
 *	fork	a fork behind the reader
 *	root	its root directory is the folder WHERE
 *	tmp	WHERE is mounted at its /tmp and /usr/lib/debug
 *	code	it sleeps in a library that is there
 *
 * and WHERE is a file of a server that has stopped to answer, or the device of userfaultfd, which nobody reads. The
 * server, its parent, is told to stop by SIGUSR1. Started as root, it becomes the user ATTACKER of its environment.
 * Prints "ready" when all is so. */
#include <dlfcn.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	PAGE = 4096,
	STACK = 512 << 10,
	FRAME = 16 << 10,
	TOP = 32 << 10,
	THREADS = 4,
	SECONDS = 120
};

static const char *where;
static off_t next_offset = 1 << 20;
static int faults = -1;
static volatile int arrived;
static char *missing;

static int is_device(void)
{
	struct stat status;

	return !stat(where, &status) && S_ISCHR(status.st_mode);
}

/* Puts memory that never comes at [from, from + bytes). */
static void lose(char *from, size_t bytes)
{
	if (faults >= 0) {
		struct uffdio_register range = { .range = { (uintptr_t)from, bytes },
						 .mode = UFFDIO_REGISTER_MODE_MISSING };

		if (mmap(from, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
		    MAP_FAILED)
			err(1, "mmap");
		if (ioctl(faults, UFFDIO_REGISTER, &range))
			err(1, "UFFDIO_REGISTER");
		return;
	}
	int fd = open(where, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		err(1, "%s", where);
	if (mmap(from, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, next_offset) == MAP_FAILED)
		err(1, "mmap of %s", where);
	/* Nothing of it may be read ahead. */
	posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
	next_offset += 1 << 20;
	close(fd);
}

__attribute__((noinline)) static void rest(long number)
{
	struct timespec time = { .tv_nsec = 20000000 };

	while (arrived >= 0) {
		if (number & 1)
			nanosleep(&time, NULL);
		else
			pause();
	}
}

__attribute__((noinline)) static void deep(int depth, char *top, long number)
{
	volatile char frame[FRAME];

	frame[0] = depth;
	if (depth) {
		deep(depth - 1, top, number);
	} else {
		char *from = (char *)(((uintptr_t)__builtin_frame_address(0) + 2 * PAGE) & ~(uintptr_t)(PAGE - 1));

		lose(from, top - from);
		__sync_fetch_and_add(&arrived, 1);
		rest(number);
	}
	frame[1] = frame[0];
}

static char *stacks;

static void *sleeper(void *argument)
{
	long number = (long)argument;
	deep(12, stacks + (number + 1) * STACK - TOP, number);
	return NULL;
}

static void begin_stacks(void)
{
	stacks = mmap(NULL, THREADS * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (long i = 0; i < THREADS; i++) {
		pthread_t thread;
		pthread_attr_t how;

		pthread_attr_init(&how);
		pthread_attr_setstack(&how, stacks + i * STACK, STACK);
		if (pthread_create(&thread, &how, sleeper, (void *)i))
			errx(1, "pthread_create");
	}
	while (arrived < THREADS)
		usleep(1000);
}

static void lose_arguments(char **argv, char **environment)
{
	uintptr_t low = (uintptr_t)argv[0], high = low;

	for (char **each = environment; *each; each++)
		high = (uintptr_t)*each + strlen(*each);
	if (high < low + 2 * PAGE)
		errx(1, "give it an environment of some pages");
	low = (low + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
	lose((char *)low, ((high - low) & ~(uintptr_t)(PAGE - 1)));
}

static void *reader(void *argument)
{
	char byte;
	int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);

	arrived = 1;
	if (pread(fd, &byte, 1, (off_t)(uintptr_t)missing) < 0)
		return argument;
	return NULL;
}

static void *writer(void *argument)
{
	while (!arrived)
		usleep(1000);
	usleep(50000);
	for (;;) {
		munmap(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), PAGE);
		usleep(1000);
	}
	return argument;
}

static void *forker(void *argument)
{
	while (!arrived)
		usleep(1000);
	usleep(50000);
	if (!fork())
		_exit(0);
	return argument;
}

static void *nobody(void *argument)
{
	return argument;
}

static void hold_lock(const char *how)
{
	void *(*behind)(void *) = !strcmp(how, "lock") ? writer : !strcmp(how, "fork") ? forker : nobody;
	pthread_t threads[2];

	if (pthread_create(&threads[0], NULL, behind, NULL) || pthread_create(&threads[1], NULL, reader, NULL))
		errx(1, "pthread_create");
	usleep(200000);
}

static void (*wait_in_library)(void);

static void prepare(const char *how)
{
	if (!strcmp(how, "code")) {
		void *library = dlopen(where, RTLD_NOW);

		if (!library)
			errx(1, "%s", dlerror());
		*(void **)&wait_in_library = dlsym(library, "wait_in_library");
	} else if (!strcmp(how, "root")) {
		if (chroot(where) || chdir("/"))
			err(1, "chroot");
	} else if (!strcmp(how, "tmp")) {
		if (!access("/usr/lib/debug", F_OK) && mount(where, "/usr/lib/debug", NULL, MS_BIND, NULL))
			err(1, "mount at /usr/lib/debug");
		if (mount(where, "/tmp", NULL, MS_BIND, NULL)) /* where `where` may be */
			err(1, "mount at /tmp");
	}
}

static void become_user(void)
{
	const char *user = getenv("ATTACKER");

	if (user && (setgid(atoi(user)) || setuid(atoi(user)) || prctl(PR_SET_DUMPABLE, 1)))
		err(1, "user %s", user);
}

int main(int argc, char **argv, char **environment)
{
	if (argc != 3)
		errx(2, "usage: stuck stack|args|lock|hold|fork|root|tmp|code WHERE");
	char how[16];

	snprintf(how, sizeof(how), "%s", argv[1]);
	where = strdup(argv[2]);
	if (is_device()) {
		struct uffdio_api api = { .api = UFFD_API };
		int device = open(where, O_RDWR | O_CLOEXEC);

		faults = ioctl(device, USERFAULTFD_IOC_NEW, O_CLOEXEC);
		if (faults < 0 || ioctl(faults, UFFDIO_API, &api))
			err(1, "userfaultfd");
	}
	alarm(SECONDS);
	prepare(how);
	become_user();
	if (!strcmp(how, "stack"))
		begin_stacks();
	else if (!strcmp(how, "args"))
		lose_arguments(argv, environment);
	else if (!strcmp(how, "lock") || !strcmp(how, "hold") || !strcmp(how, "fork"))
		lose(missing = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), PAGE);
	if (faults < 0)
		kill(getppid(), SIGUSR1);
	usleep(50000);
	if (missing)
		hold_lock(how);
	char line[64];
	int bytes = snprintf(line, sizeof(line), "ready %d\n", getpid());

	if (write(1, line, bytes) < 0)
		err(1, "standard output");
	for (;;) {
		if (wait_in_library)
			wait_in_library();
		else
			usleep(20000);
	}
}
