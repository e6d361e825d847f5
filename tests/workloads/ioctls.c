/* Processes call ioctl on a terminal, on the host's network devices, or on a file that a process of ours serves.
 *
 *	ioctls [--wait] [--linger] tty|inside|tun|held|slow|beside [PROCESSES=1] [CALLS=100] [HOLD_US=2000]
 *
 * Truth: a record per command and process with its number of calls and their time, measured around each.
 *	tty: TIOCGWINSZ succeeds; TCGETS, on /dev/null, fails with ENOTTY.
 *	inside: get_sizes(), a function that calls TIOCGWINSZ twice and sleeps for 100 us in between; its record is of its calls.
 *	tun: TUNSETQUEUE, twice per round, takes the host-wide rtnl mutex. Needs CAP_NET_ADMIN and /dev/net/tun.
 *	held: the file is served through FUSE by one thread, which takes HOLD_US for each call: the others wait. The calls
 *	and their parameters are like those of NVIDIA's driver: this is a stand-in, which says nothing about the driver.
 *	CONTROL (status 0), FAILED (a control whose status is 0x1f), ALLOC, FREE, XFER (a control behind the argument), and
 *	UNKNOWN, which fails with EINVAL.
 *	slow: the same file; every process calls the same control, but those of the fourth process, SLOW, take ten times
 *	as long.
 *	beside: the same file and control. Each process but the first calls it CALLS times while no other call is made
 *	(ALONE); then each, one after the other, while the first calls HOLDER, an ALLOC, all the time (BESIDE); then all of
 *	them at once (TOGETHER). */
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <pty.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <termios.h>
#include "held_device.h"
#include "workload.h"

#define MAX_PROCESSES 32

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

/* Not static: it has a symbol. */
NAMED void get_sizes(int terminal)
{
	struct timespec pause = { 0, 100000 };
	struct winsize window;

	if (ioctl(terminal, TIOCGWINSZ, &window) || nanosleep(&pause, NULL) || ioctl(terminal, TIOCGWINSZ, &window))
		die("TIOCGWINSZ");
	KEEP_FRAME();
}

static void use_inside(long calls)
{
	struct wait_truth *sizes = new_wait("get_sizes");
	int master, slave;

	if (openpty(&master, &slave, NULL, NULL, NULL))
		die("openpty");
	await_start();
	for (long i = 0; i < calls; i++) {
		struct mark mark = wait_begins();

		get_sizes(slave);
		wait_ends(sizes, mark);
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

static void use_slow(long calls, const char *path, uint32_t process)
{
	struct wait_truth *wait = new_wait(process == SLOW_PROCESS ? "SLOW" : "CONTROL");
	struct control control = { .command = 0x20800102, .object = process };
	int fd;

	await_start();
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		die(path);
	for (long i = 0; i < calls; i++)
		call(wait, fd, RM_CONTROL, &control, 0);
}

static int baton[MAX_PROCESSES][2]; /* pipes: to each process */
static volatile bool *beside_over;

static void pass_to(int process)
{
	if (write(baton[process][1], "", 1) != 1)
		die("write");
}

static void await_baton(int process)
{
	char byte;

	if (read(baton[process][0], &byte, 1) != 1)
		die("read");
}

static void prepare_beside(int processes)
{
	beside_over = mmap(NULL, sizeof(*beside_over), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (beside_over == MAP_FAILED)
		die("mmap");
	for (int i = 0; i < processes; i++)
		if (pipe(baton[i]))
			die("pipe");
	pass_to(processes > 1);
}

static void use_beside(long calls, const char *path, int process, int processes)
{
	static const char *const parts[] = { "ALONE", "BESIDE", "TOGETHER" };
	struct control control = { .command = 0x20800102 };
	struct alloc alloc = { .class = 0x2080 };
	int fd, next = (process + 1) % processes;

	await_start();
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		die(path);
	await_baton(process);
	if (process == 0) {
		struct wait_truth *holder = new_wait("HOLDER");

		pass_to(next);
		while (!*beside_over)
			call(holder, fd, RM_ALLOC, &alloc, 0);
		for (int i = 1; i < processes; i++)
			pass_to(i);
		return;
	}
	for (int part = 0; part < 3; part++) {
		struct wait_truth *wait = new_wait(parts[part]);

		for (long i = 0; i < calls; i++)
			call(wait, fd, RM_CONTROL, &control, 0);
		if (part == 1 && next == 0)
			*beside_over = true;
		else if (part < 2)
			pass_to(next);
		if (part < 2)
			await_baton(process);
	}
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
	if (strcmp(what, "held") == 0 || strcmp(what, "slow") == 0 || strcmp(what, "beside") == 0)
		server = start_held_device(folder, workload_number(3, 2000, 9999999));
	snprintf(path, sizeof(path), "%s/file", folder);
	if (strcmp(what, "beside") == 0)
		prepare_beside(processes);
	for (int i = 0; i < processes; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			die("fork");
		if (pids[i])
			continue;
		workload_child();
		if (strcmp(what, "slow") == 0)
			use_slow(calls, path, i);
		else if (strcmp(what, "beside") == 0)
			use_beside(calls, path, i, processes);
		else if (server)
			use_held(calls, path);
		else if (strcmp(what, "tun") == 0)
			use_tun(calls);
		else if (strcmp(what, "inside") == 0)
			use_inside(calls);
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
	if (server)
		end_held_device(folder, server);
	return workload_end(begin);
}
