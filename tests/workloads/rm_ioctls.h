/* Structures and numbers of ioctl calls of NVIDIA's driver, for the stand-ins, in user space and in the kernel
 * (nvos.h, nv-ioctl.h, nv_escape.h of NVIDIA/open-gpu-kernel-modules 595.45.04). */
#ifndef STALLSCOPE_RM_IOCTLS_H
#define STALLSCOPE_RM_IOCTLS_H

#ifdef __KERNEL__
#include <linux/ioctl.h>
#include <linux/types.h>
#else
#include <stdint.h>
#include <sys/ioctl.h>
#endif

/* NVOS54. */
struct control {
	uint32_t client, object, command, flags;
	uint64_t parameters;
	uint32_t size, status;
};

/* NVOS64. */
struct alloc {
	uint32_t root, parent, object, class;
	uint64_t parameters, rights;
	uint32_t size, flags, status, pad;
};

/* NVOS21, which the driver tells from NVOS64 by its size. */
struct short_alloc {
	uint32_t root, parent, object, class;
	uint64_t parameters;
	uint32_t size, status;
};

/* NVOS00. */
struct release {
	uint32_t root, parent, object, status;
};

/* The argument of NV_ESC_IOCTL_XFER_CMD. */
struct xfer {
	uint32_t command, size;
	uint64_t pointer;
};

#define NV_ESC_RM_FREE 0x29
#define NV_ESC_RM_CONTROL 0x2a
#define NV_ESC_RM_ALLOC 0x2b
#define NV_ESC_IOCTL_XFER_CMD 211

#define RM_CONTROL _IOWR('F', NV_ESC_RM_CONTROL, struct control)
#define RM_ALLOC _IOWR('F', NV_ESC_RM_ALLOC, struct alloc)
#define RM_SHORT_ALLOC _IOWR('F', NV_ESC_RM_ALLOC, struct short_alloc)
#define RM_FREE _IOWR('F', NV_ESC_RM_FREE, struct release)
#define XFER _IOWR('F', NV_ESC_IOCTL_XFER_CMD, struct xfer)

#define NV_MAJOR 195
#define NV_CONTROL_MINOR 255 /* /dev/nvidiactl */

#endif
