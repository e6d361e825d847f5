/* A file whose ioctl calls a process of ours answers through FUSE, one at a time, each after it was held for a while.
 *
 * Its numbers and parameters are like those of NVIDIA's driver (nvos.h, nv-ioctl.h). It is a stand-in, which says
 * nothing about the driver. */
#ifndef STALLSCOPE_HELD_DEVICE_H
#define STALLSCOPE_HELD_DEVICE_H

#include <stdint.h>
#include <sys/ioctl.h>

#define SLOW_PROCESS 3 /* a control of an object with this number is held SLOWER times as long */
#define SLOWER 10
#define FAILED_CONTROL 0x20801303 /* answered with status 0x1f */

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

/* Mounts the file, as FOLDER/file, in a mount namespace of this process and its children, and forks its server; returns
 * the server's process id. `folder`: a template for mkdtemp(). */
int start_held_device(char *folder, long hold_us);

void end_held_device(const char *folder, int server);

#endif
