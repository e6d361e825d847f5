/* A file whose ioctl calls a process of ours answers through FUSE, one at a time, each after it was held for a while.
 *
 * Its numbers and parameters are like those of NVIDIA's driver (nvos.h, nv-ioctl.h). It is a stand-in, which says
 * nothing about the driver. */
#ifndef STALLSCOPE_HELD_DEVICE_H
#define STALLSCOPE_HELD_DEVICE_H

#include "rm_ioctls.h"

#define SLOW_PROCESS 3 /* a control of an object with this number is held SLOWER times as long */
#define SLOWER 10
#define FAILED_CONTROL 0x20801303 /* answered with status 0x1f */

#define UNKNOWN _IO('F', 1)

/* Mounts the file, as FOLDER/file, in a mount namespace of this process and its children, and forks its server; returns
 * the server's process id. `folder`: a template for mkdtemp(). */
int start_held_device(char *folder, long hold_us);

void end_held_device(const char *folder, int server);

#endif
