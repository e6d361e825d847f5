/* Processes call ioctl on a terminal, on the host's network devices, or on a file that a process of ours serves.
 *
 *	ioctls [--wait] [--linger] tty|tun|held [PROCESSES=1] [CALLS=100] [HOLD_US=2000]
 *
 * Truth: a record per command and process with its number of calls and their time, measured around each.
 *	tty: TIOCGWINSZ succeeds; TCGETS, on /dev/null, fails with ENOTTY.
 *	tun: TUNSETQUEUE, twice per round, takes the host-wide rtnl mutex. Needs CAP_NET_ADMIN and /dev/net/tun.
 *	held: the file is served through FUSE by one thread, which takes HOLD_US for each call: the others wait. The calls
 *	and their parameters are like those of NVIDIA's driver: this is a stand-in, which says nothing about the driver.
 *	CONTROL (status 0), FAILED (a control whose status is 0x1f), ALLOC, FREE, XFER (a control behind the argument), and
 *	UNKNOWN, which fails with EINVAL. */
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <pty.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include "workload.h"

#define MAX_PROCESSES 32
#define LARGEST (1 << 17) /* of a request: FUSE_MIN_READ_BUFFER and more */
#define FILE_NODE 2
#define FAILED_CONTROL 0x20801303

/* NVOS54, NVOS64, NVOS00 (nvos.h) and the argument of NV_ESC_IOCTL_XFER_CMD (nv-ioctl.h). */
struct control {
	uint32_t client, object, command, flags;
	uint64_t parameters;
	uint32_t size, status;
};

struct alloc {
	uint32_t root, parent, object, class;
	uint64_t parameters, rights;
	uint32_t size, flags, status, pad;
};

struct release {
	uint32_t root, parent, object, status;
};

struct xfer {
	uint32_t command, size;
	uint64_t pointer;
};

#define RM_CONTROL _IOWR('F', 0x2a, struct control)
#define RM_ALLOC _IOWR('F', 0x2b, struct alloc)
#define RM_FREE _IOWR('F', 0x29, struct release)
#define XFER _IOWR('F', 211, struct xfer)
#define UNKNOWN _IO('F', 1)

/* In line: calls from different places are then recognised by where they come from, and cost the tracer less. */
static inline __attribute__((always_inline)) void call(struct wait_truth *w, int fd, unsigned long command,
						       void *argument, long expected)
{
	long result = measured(w, SYS_ioctl, fd, (long)command, (long)argument, 0, 0, 0);

	if (result != expected) {
		errno = (int)-result;
		die(w->function);
	}
}

static void use_tty(long calls)
{
	struct wait_truth *size = new_wait("TIOCGWINSZ"), *settings = new_wait("TCGETS");
	int master, slave, null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct winsize window;
	struct termios termios;

	if (null < 0 || openpty(&master, &slave, NULL, NULL, NULL))
		die("openpty");
	await_start();
	for (long i = 0; i < calls; i++) {
		call(size, slave, TIOCGWINSZ, &window, 0);
		call(settings, null, TCGETS, &termios, -ENOTTY);
	}
}

static void use_tun(long calls)
{
	struct wait_truth *queue = new_wait("TUNSETQUEUE");
	struct ifreq attach = { .ifr_flags = IFF_ATTACH_QUEUE }, detach = { .ifr_flags = IFF_DETACH_QUEUE };
	struct ifreq device = { .ifr_flags = IFF_TAP | IFF_NO_PI | IFF_MULTI_QUEUE };
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);

	if (fd < 0 || ioctl(fd, TUNSETIFF, &device))
		die("/dev/net/tun");
	await_start();
	for (long i = 0; i < calls; i++) {
		call(queue, fd, TUNSETQUEUE, &detach, 0);
		call(queue, fd, TUNSETQUEUE, &attach, 0);
	}
	close(fd);
}

static void use_held(long calls, const char *path)
{
	struct wait_truth *good = new_wait("CONTROL"), *bad = new_wait("FAILED"), *new = new_wait("ALLOC");
	struct wait_truth *gone = new_wait("FREE"), *behind = new_wait("XFER"), *none = new_wait("UNKNOWN");
	struct control control = { .command = 0x20800102 }, failed = { .command = FAILED_CONTROL };
	struct control hidden = { .command = 0x20800110, .status = 0x1f };
	struct xfer xfer = { 0x2a, sizeof(hidden), (uint64_t)(uintptr_t)&hidden };
	struct alloc alloc = { .class = 0x2080 };
	struct release release = { 0 };
	int fd;

	await_start();
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		die(path);
	for (long i = 0; i < calls; i++) {
		call(good, fd, RM_CONTROL, &control, 0);
		call(bad, fd, RM_CONTROL, &failed, 0);
		call(new, fd, RM_ALLOC, &alloc, 0);
		call(gone, fd, RM_FREE, &release, 0);
		call(behind, fd, XFER, &xfer, 0);
		call(none, fd, UNKNOWN, NULL, -EINVAL);
	}
}

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

/* Mounts the file, in a mount namespace of this process and its children, and forks the server. */
static int start_server(char *folder, long hold_us)
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

int main(int argc, char **argv)
{
	char folder[] = "/tmp/ioctls.XXXXXX", path[64];
	int pids[MAX_PROCESSES + 1] = { 0 }, server = 0;
	long processes, calls;
	const char *what;
	uint64_t begin;

	workload_begin(argc, argv);
	what = workload_argc > 0 ? workload_argv[0] : "tty";
	processes = workload_number(1, 1, MAX_PROCESSES);
	calls = workload_number(2, 100, 1000000);
	if (strcmp(what, "held") == 0)
		server = start_server(folder, workload_number(3, 2000, 9999999));
	snprintf(path, sizeof(path), "%s/file", folder);
	for (int i = 0; i < processes; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			die("fork");
		if (pids[i])
			continue;
		workload_child();
		if (server)
			use_held(calls, path);
		else if (strcmp(what, "tun") == 0)
			use_tun(calls);
		else
			use_tty(calls);
		_exit(0);
	}
	open_gate(pids, pids);
	begin = clock_ns(CLOCK_MONOTONIC);
	for (int i = 0; i < processes; i++) {
		int status;

		if (waitpid(pids[i], &status, 0) != pids[i] || status != 0) {
			fprintf(stderr, "ioctls: process %d failed\n", i);
			return 1;
		}
	}
	if (server) {
		umount2(folder, MNT_DETACH);
		rmdir(folder);
		kill(server, SIGKILL);
	}
	return workload_end(begin);
}
