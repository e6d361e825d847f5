/* A model of a GPU driver's user library: an innocent query that takes one lock for the whole host.
 *
 * The device is /dev/net/tun, whose every ioctl() takes the kernel's rtnl mutex. Detaching the only queue of a multi-queue
 * interface waits for an RCU grace period (a few 100 µs) with the mutex held, so that processes that ask at the same time
 * wait for each other: one alone needs 0.3 ms a call, eight need 1.3 ms each. Creating and destroying an interface per
 * call (TUNSETIFF, close) would hold the mutex as long, but close() then waits ten times longer for other reasons and
 * would hide what is to be shown.
 *
 * The interface is created by the first call, named by the kernel, never brought up, and goes with its file descriptor,
 * which the process's end closes. Needs CAP_NET_ADMIN. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <linux/if.h>
#include <linux/ioctl.h>
#include <linux/if_tun.h>
#include "demo_cuda.h"
#include "syscall6.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int device_fd = -1;
static int device_error;

/* The C library's has no frame of its own, so that frame pointers lose its caller; this one has. */
static NAMED long ioctl(int fd, unsigned long request, void *argument)
{
	long result = syscall6(SYS_ioctl, fd, (long)request, (long)argument, 0, 0, 0);

	KEEP_FRAME();
	return result;
}

/* A container without the device node may still make one, in a folder of its own. */
static int open_private_node(void)
{
	char folder[] = "/tmp/demo-cuda-XXXXXX", node[sizeof(folder) + 8];
	int fd = -1;

	if (!mkdtemp(folder))
		return -1;
	snprintf(node, sizeof(node), "%s/tun", folder);
	if (mknod(node, S_IFCHR | 0600, makedev(10, 200)) == 0) {
		fd = open(node, O_RDWR | O_CLOEXEC);
		unlink(node);
	}
	rmdir(folder);
	return fd;
}

static void open_device(void)
{
	struct ifreq request = { .ifr_name = "demo%d" };
	long error;

	device_fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	if (device_fd < 0 && errno == ENOENT)
		device_fd = open_private_node();
	if (device_fd < 0) {
		device_error = errno == ENOENT || errno == ENXIO ? ENODEV : errno;
		return;
	}
	request.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_MULTI_QUEUE;
	error = ioctl(device_fd, TUNSETIFF, &request);
	if (error < 0)
		device_error = (int)-error;
}

static long set_queue(short state)
{
	struct ifreq request = { .ifr_flags = state };

	return ioctl(device_fd, TUNSETQUEUE, &request);
}

__attribute__((visibility("default"))) NAMED int cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
	long error;

	pthread_once(&once, open_device);
	if (device_error)
		return device_error;
	error = set_queue(IFF_DETACH_QUEUE);
	if (error == 0)
		error = set_queue(IFF_ATTACH_QUEUE);
	if (error < 0)
		return (int)-error;
	snprintf(properties->name, sizeof(properties->name), "demo device %d", device);
	properties->multiProcessorCount = 132;
	KEEP_FRAME();
	return 0;
}
