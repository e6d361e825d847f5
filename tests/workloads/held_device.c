/* See held_device.h. */
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include "held_device.h"
#include "workload.h"

#define LARGEST (1 << 17) /* of a request: FUSE_MIN_READ_BUFFER and more */
#define FILE_NODE 2

static void reply(int fuse, uint64_t unique, int error, const void *data, size_t size)
{
	char buffer[512];
	struct fuse_out_header head = { (uint32_t)(sizeof(head) + size), error, unique };

	memcpy(buffer, &head, sizeof(head));
	if (size)
		memcpy(buffer + sizeof(head), data, size);
	if (write(fuse, buffer, sizeof(head) + size) < 0 && errno != ENOENT)
		die("write to /dev/fuse");
}

static struct fuse_attr attributes(uint64_t node)
{
	struct fuse_attr found = { .ino = node, .nlink = 1, .blksize = 4096 };

	found.mode = node == FILE_NODE ? S_IFREG | 0600 : S_IFDIR | 0700;
	return found;
}

/* Holds the call, then answers it: with the parameters, in which the status may be set. */
static void serve_ioctl(int fuse, const struct fuse_in_header *head, long hold_us)
{
	const struct fuse_ioctl_in *in = (const void *)(head + 1);
	struct timespec hold = { hold_us / 1000000, hold_us % 1000000 * 1000 };
	struct fuse_ioctl_out out = { 0 };
	char answer[256];

	if (in->cmd == RM_CONTROL && ((const struct control *)(in + 1))->object == SLOW_PROCESS) {
		hold.tv_sec = hold_us * SLOWER / 1000000;
		hold.tv_nsec = hold_us * SLOWER % 1000000 * 1000;
	}
	nanosleep(&hold, NULL);
	if (in->cmd == UNKNOWN) {
		reply(fuse, head->unique, -EINVAL, NULL, 0);
		return;
	}
	memcpy(answer, &out, sizeof(out));
	memcpy(answer + sizeof(out), in + 1, in->in_size);
	if (in->cmd == RM_CONTROL) {
		struct control *control = (void *)(answer + sizeof(out));

		control->status = control->command == FAILED_CONTROL ? 0x1f : 0;
	}
	reply(fuse, head->unique, 0, answer, sizeof(out) + in->out_size);
}

static void serve(int fuse, long hold_us)
{
	static char buffer[LARGEST] __attribute__((aligned(8)));
	const struct fuse_in_header *head = (const void *)buffer;

	for (;;) {
		if (read(fuse, buffer, sizeof(buffer)) < 0) {
			if (errno == EINTR || errno == ENOENT)
				continue;
			_exit(0); /* it was unmounted */
		}
		if (head->opcode == FUSE_INIT) {
			struct fuse_init_out out = { .major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = 4096 };

			reply(fuse, head->unique, 0, &out, sizeof(out));
		} else if (head->opcode == FUSE_LOOKUP) {
			struct fuse_entry_out out = { .nodeid = FILE_NODE, .attr = attributes(FILE_NODE) };

			reply(fuse, head->unique, 0, &out, sizeof(out));
		} else if (head->opcode == FUSE_GETATTR) {
			struct fuse_attr_out out = { .attr = attributes(head->nodeid) };

			reply(fuse, head->unique, 0, &out, sizeof(out));
		} else if (head->opcode == FUSE_OPEN) {
			struct fuse_open_out out = { .fh = 1, .open_flags = FOPEN_DIRECT_IO };

			reply(fuse, head->unique, 0, &out, sizeof(out));
		} else if (head->opcode == FUSE_IOCTL) {
			serve_ioctl(fuse, head, hold_us);
		} else if (head->opcode == FUSE_FLUSH || head->opcode == FUSE_RELEASE) {
			reply(fuse, head->unique, 0, NULL, 0);
		} else if (head->opcode != FUSE_FORGET) {
			reply(fuse, head->unique, -ENOSYS, NULL, 0);
		}
	}
}

int start_held_device(char *folder, long hold_us)
{
	char options[64];
	int fuse, server;

	if (!mkdtemp(folder) || unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		die("unshare");
	fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse);
	if (fuse < 0 || mount("held", folder, "fuse", MS_NOSUID | MS_NODEV, options))
		die("/dev/fuse");
	server = fork();
	if (server < 0)
		die("fork");
	if (server == 0) {
		workload_child();
		serve(fuse, hold_us);
	}
	close(fuse);
	return server;
}

void end_held_device(const char *folder, int server)
{
	umount2(folder, MNT_DETACH);
	rmdir(folder);
	kill(server, SIGKILL);
}
