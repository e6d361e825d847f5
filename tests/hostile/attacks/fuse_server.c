/* A file system of an unprivileged user that answers until it is told to stop:
 *
 *	fuse_server [-r UID] DEVICE FOLDER FILE... -- COMMAND...
 *
 * mounts FOLDER in namespaces of its own and runs COMMAND there. FOLDER has the given files, and `cold`: a GB of zeros.
 * After SIGUSR1, which COMMAND sends its parent, requests are taken and never answered: whoever waits for one cannot
 * be killed until this program ends. With -r it is mounted as root mounts one for a user, with allow_other: root's own
 * accesses reach the server, too. The protocol is that of linux/fuse.h. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	SECONDS = 120,
	REQUEST_BYTES = 1 << 20,
	MOST_FILES = 64,
	COLD = MOST_FILES + 2
};
#define COLD_BYTES (1ULL << 30)

struct served {
	const char *name;
	int fd;
	unsigned long long size;
};

static struct served files[MOST_FILES];
static int count, device;
static volatile sig_atomic_t silent;
static char data[REQUEST_BYTES + (64 << 10)];

static void on_signal(int number)
{
	(void)number;
	silent = 1;
}

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		err(1, "%s", path);
	close(fd);
}

static void answer(unsigned long long unique, int error, const void *body, size_t bytes)
{
	struct fuse_out_header head = { .len = sizeof(head) + bytes, .error = -error, .unique = unique };
	struct iovec parts[] = { { &head, sizeof(head) }, { (void *)body, bytes } };

	if (writev(device, parts, bytes ? 2 : 1) < 0 && errno != ENOENT && errno != ENODEV)
		err(1, "answer");
}

static struct fuse_attr attributes(unsigned long long node)
{
	struct fuse_attr attr = { .ino = node, .nlink = 1, .mode = S_IFREG | 0555, .blksize = 4096 };

	if (node == FUSE_ROOT_ID)
		attr.mode = S_IFDIR | 0777;
	else
		attr.size = node == COLD ? COLD_BYTES : files[node - 2].size;
	return attr;
}

static void look_up(unsigned long long unique, const char *name)
{
	struct fuse_entry_out entry = { 0 };

	for (int i = 0; i < count; i++)
		if (!strcmp(name, files[i].name))
			entry.nodeid = i + 2;
	if (!strcmp(name, "cold"))
		entry.nodeid = COLD;
	if (!entry.nodeid) {
		answer(unique, ENOENT, NULL, 0);
		return;
	}
	entry.attr = attributes(entry.nodeid);
	answer(unique, 0, &entry, sizeof(entry));
}

static void read_file(unsigned long long unique, unsigned long long node, const struct fuse_read_in *in)
{
	size_t size = in->size < REQUEST_BYTES ? in->size : REQUEST_BYTES;
	ssize_t got = size;

	if (node == COLD)
		memset(data, 0, size);
	else
		got = pread(files[node - 2].fd, data, size, in->offset);
	answer(unique, 0, data, got < 0 ? 0 : got);
}

static void serve_one(const struct fuse_in_header *head, const void *body)
{
	struct fuse_attr_out attr = { .attr = attributes(head->nodeid) };
	struct fuse_init_out init = { .major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = 4096 };
	struct fuse_open_out open = { 0 };

	switch (head->opcode) {
	case FUSE_INIT:
		answer(head->unique, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		look_up(head->unique, body);
		break;
	case FUSE_GETATTR:
		answer(head->unique, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		answer(head->unique, 0, &open, sizeof(open));
		break;
	case FUSE_READ:
		read_file(head->unique, head->nodeid, body);
		break;
	case FUSE_READDIR:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
	case FUSE_FLUSH:
		answer(head->unique, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		answer(head->unique, ENOSYS, NULL, 0);
	}
}

static void serve(void)
{
	static char request[REQUEST_BYTES] __attribute__((aligned(8)));

	for (;;) {
		ssize_t bytes = read(device, request, sizeof(request));

		if (bytes < 0 && (errno == EINTR || errno == EAGAIN || errno == ENOENT))
			continue;
		if (bytes < (ssize_t)sizeof(struct fuse_in_header))
			exit(0);
		if (!silent)
			serve_one((void *)request, request + sizeof(struct fuse_in_header));
	}
}

static void own_namespaces(int for_user)
{
	char text[64];
	int uid = getuid(), gid = getgid();

	if (unshare(for_user < 0 ? CLONE_NEWUSER | CLONE_NEWNS : CLONE_NEWNS))
		err(1, "unshare");
	if (for_user < 0) {
		write_text("/proc/self/setgroups", "deny");
		snprintf(text, sizeof(text), "0 %d 1", uid);
		write_text("/proc/self/uid_map", text);
		snprintf(text, sizeof(text), "0 %d 1", gid);
		write_text("/proc/self/gid_map", text);
	}
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		err(1, "private mounts");
}

static void mount_at(const char *folder, int for_user)
{
	char options[128];
	int owner = for_user < 0 ? 0 : for_user;

	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=%d,group_id=%d%s", device, owner, owner,
		 for_user < 0 ? "" : ",allow_other");
	if (mount("stallscope-test", folder, "fuse", MS_NODEV | MS_NOSUID, options))
		err(1, "mount");
}

int main(int argc, char **argv)
{
	int for_user = -1, at = 1, begin[2];
	struct sigaction action = { .sa_handler = on_signal };

	if (argc > 2 && !strcmp(argv[at], "-r")) {
		for_user = atoi(argv[at + 1]);
		at += 2;
	}
	if (argc - at < 4)
		errx(2, "usage: fuse_server [-r UID] DEVICE FOLDER FILE... -- COMMAND...");
	own_namespaces(for_user);
	device = open(argv[at++], O_RDWR | O_CLOEXEC);
	if (device < 0)
		err(1, "device");
	const char *folder = argv[at++];

	for (; at < argc && strcmp(argv[at], "--"); at++) {
		struct stat status;
		int fd = open(argv[at], O_RDONLY | O_CLOEXEC);

		if (fd < 0 || fstat(fd, &status) || count == MOST_FILES)
			err(1, "%s", argv[at]);
		files[count++] = (struct served){ basename(argv[at]), fd, status.st_size };
	}
	mount_at(folder, for_user);
	sigaction(SIGUSR1, &action, NULL);
	alarm(SECONDS); /* whatever becomes of the test: then the connection ends, and everybody wakes */
	signal(SIGCHLD, SIG_IGN);
	if (pipe2(begin, O_CLOEXEC))
		err(1, "pipe");
	if (!fork()) {
		close(begin[1]);
		while (read(begin[0], data, 1) > 0)
			; /* until this program's user is the one who may send it a signal */
		execvp(argv[at + 1], argv + at + 1);
		err(1, "%s", argv[at + 1]);
	}
	if (for_user >= 0 && (setgid(for_user) || setuid(for_user)))
		err(1, "setuid");
	close(begin[1]);
	serve();
}
