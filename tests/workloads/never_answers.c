/* A process whose memory or files are served by a program that never answers: see tests/live/test_outside.py.
 *
 *   never_answers memory    a thread sleeps, and a page of its stack is missing and handled by userfaultfd
 *   never_answers words …   the same for the pages of its arguments and environment, which have to be long
 *   never_answers file DIR  its code is mapped from a FUSE mount at DIR, whose server stops answering
 *
 * Prints "ready", and ends after SECONDS. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SECONDS 60
#define PAGE 4096UL
#define STACK (256 * 1024UL)
#define MISSING (4 * PAGE) /* of the callers' frames */
#define INODE 42
#define SIZE (64 * PAGE)

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* Registers a range: who touches a page of it that is not there waits for ever. */
static void serve(void *begin, size_t size)
{
	struct uffdio_register range = { .range = { (uintptr_t)begin, size }, .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_api api = { .api = UFFD_API };
	int device = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
	int fd = device < 0 ? (int)syscall(SYS_userfaultfd, O_CLOEXEC) : ioctl(device, USERFAULTFD_IOC_NEW, O_CLOEXEC);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &range))
		fail("userfaultfd");
}

/* The frames of the sleep are there; those of its callers, in the pages above, are not there any more. */
static void *sleeper(void *unused)
{
	volatile char here = 0;
	char *above = (char *)(((uintptr_t)&here & -PAGE) + PAGE);

	(void)unused;
	if (madvise(above, MISSING, MADV_DONTNEED))
		fail("madvise");
	serve(above, MISSING);
	printf("ready\n");
	fflush(stdout);
	sleep(SECONDS);
	return NULL;
}

static void __attribute__((noinline)) deeper(int frames)
{
	volatile char room[2 * PAGE];

	room[0] = (char)frames;
	if (frames)
		deeper(frames - 1);
	else
		sleeper(NULL);
	room[1] = room[0];
}

static void *begin(void *unused)
{
	(void)unused;
	deeper(4);
	return NULL;
}

static void memory(void)
{
	pthread_attr_t attributes;
	pthread_t thread;
	void *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);

	if (stack == MAP_FAILED)
		fail("mmap");
	pthread_attr_init(&attributes);
	pthread_attr_setstack(&attributes, stack, STACK);
	if (pthread_create(&thread, &attributes, begin, NULL))
		fail("pthread_create");
	sleep(SECONDS);
}

/* The pages that hold nothing else: there have to be many words. */
static void words(char **arguments, char **environment)
{
	char *begin = arguments[0], *end = begin;

	while (*environment)
		end = *environment++;
	begin = (char *)(((uintptr_t)begin + PAGE - 1) & -PAGE);
	end = (char *)((uintptr_t)end & -PAGE);
	if (end <= begin || madvise(begin, (size_t)(end - begin), MADV_DONTNEED))
		fail("madvise");
	serve(begin, (size_t)(end - begin));
	printf("ready\n");
	fflush(stdout);
	sleep(SECONDS);
}

static void answer(int fd, uint64_t unique, int error, const void *data, size_t size)
{
	char reply[sizeof(struct fuse_out_header) + 2 * SIZE];
	struct fuse_out_header head = { .len = (uint32_t)(sizeof(head) + size), .error = error, .unique = unique };

	memcpy(reply, &head, sizeof(head));
	if (size)
		memcpy(reply + sizeof(head), data, size);
	if (write(fd, reply, head.len) < 0 && errno != ENOENT)
		fail("answer");
}

static struct fuse_attr attributes(uint64_t node)
{
	struct fuse_attr found = { .ino = node, .nlink = 1, .blksize = PAGE };

	found.mode = node == INODE ? S_IFREG | 0755 : S_IFDIR | 0755;
	found.size = node == INODE ? SIZE : 0;
	return found;
}

static char content[SIZE];

/* Serves one file, "code", until its first page has been read twice; then it reads requests, and answers none. */
static void serve_files(int fd)
{
	static char request[1 << 20];
	int reads = 0;

	for (;;) {
		ssize_t length = read(fd, request, sizeof(request));
		struct fuse_in_header *in = (void *)request;

		if (length < 0 && errno == ENODEV)
			_exit(0);
		if (length < (ssize_t)sizeof(*in))
			continue;
		if (in->opcode == FUSE_INIT) {
			struct fuse_init_in *asked = (void *)(in + 1);
			struct fuse_init_out out = { .major = 7, .minor = 31, .max_write = PAGE };

			(void)asked;
			answer(fd, in->unique, 0, &out, sizeof(out));
		} else if (reads >= 1) {
			continue;
		} else if (in->opcode == FUSE_LOOKUP) {
			struct fuse_entry_out out = { .nodeid = INODE, .attr = attributes(INODE) };

			answer(fd, in->unique, 0, &out, sizeof(out));
		} else if (in->opcode == FUSE_GETATTR) {
			struct fuse_attr_out out = { .attr = attributes(in->nodeid) };

			answer(fd, in->unique, 0, &out, sizeof(out));
		} else if (in->opcode == FUSE_OPEN || in->opcode == FUSE_OPENDIR) {
			struct fuse_open_out out = { 0 };

			answer(fd, in->unique, 0, &out, sizeof(out));
		} else if (in->opcode == FUSE_READ) {
			struct fuse_read_in *what = (void *)(in + 1);

			reads++;
			answer(fd, in->unique, 0, content + what->offset,
			       what->offset + what->size > SIZE ? SIZE - what->offset : what->size);
		} else if (in->opcode != FUSE_FORGET && in->opcode != FUSE_BATCH_FORGET) {
			answer(fd, in->unique, -ENOSYS, NULL, 0);
		}
	}
}

/* Code that sleeps: its own page is there; the next ones are not, and the mapping waits for them. */
static void file(const char *folder)
{
	char options[128], path[256];
	char *code;
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	int mapped;

	/* nop; nop; ret, over and over */
	memset(content, 0x90, sizeof(content));
	memset(content + PAGE - 1, 0xc3, 1);
	if (fd < 0)
		fail("/dev/fuse");
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=%d,group_id=%d,allow_other", fd, 1000, 1000);
	if (mount("never", folder, "fuse.never", MS_NOSUID | MS_NODEV, options))
		fail("mount");
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, 9);
		serve_files(fd);
	}
	close(fd); /* with the server, the mount ends, and who waits for it */
	snprintf(path, sizeof(path), "%s/code", folder);
	mapped = open(path, O_RDONLY);
	if (mapped < 0)
		fail(path);
	code = mmap(NULL, SIZE, PROT_READ | PROT_EXEC, MAP_PRIVATE, mapped, 0);
	if (code == MAP_FAILED)
		fail("mmap of the file");
	((void (*)(void))code)();
	printf("ready\n");
	fflush(stdout);
	sleep(SECONDS);
}

int main(int count, char **arguments, char **environment)
{
	prctl(PR_SET_PDEATHSIG, 9);
	alarm(SECONDS);
	if (count > 1 && !strcmp(arguments[1], "memory"))
		memory();
	else if (count > 1 && !strcmp(arguments[1], "words"))
		words(arguments, environment);
	else if (count > 2 && !strcmp(arguments[1], "file"))
		file(arguments[2]);
	return 1;
}
