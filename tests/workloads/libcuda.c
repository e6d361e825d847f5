/* A stand-in for CUDA's driver library, libcuda.so.1: some of its functions, under their names.
 *
 * Each issues ioctl calls with the numbers and structures of NVIDIA's driver, to the file that STANDIN_DEVICE names
 * (held_device.c). It says nothing about what CUDA does. cuMemAlloc, of an old version, ends by jumping to
 * cuMemAlloc_v2. A size of 0 is an error: CUDA_ERROR_INVALID_VALUE. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "held_device.h"
#include "standin_cuda.h"
#include "syscall6.h"

#define EXPORTED __attribute__((visibility("default"), noinline))
#define INVALID_VALUE 1
#define NOT_INITIALIZED 3
#define NOT_FOUND 500

static int device = -1;

static int control(uint32_t command)
{
	struct control parameters = { .command = command };

	if (device < 0)
		return NOT_INITIALIZED;
	return syscall6(SYS_ioctl, device, RM_CONTROL, (long)&parameters, 0, 0, 0) < 0 ? 999 : 0;
}

EXPORTED int cuInit(unsigned int flags)
{
	const char *path = getenv(STANDIN_DEVICE);

	if (flags || !path)
		return INVALID_VALUE;
	if (device < 0)
		device = open(path, O_RDWR | O_CLOEXEC);
	return device < 0 ? 100 : 0;
}

EXPORTED int cuDeviceGetAttribute(int *value, int attribute, int number)
{
	*value = attribute + number;
	return control(0x20800102);
}

EXPORTED int cuMemAlloc_v2(uint64_t *pointer, unsigned long size)
{
	struct alloc parameters = { .class = 0x40 };

	if (!size)
		return INVALID_VALUE;
	if (device < 0)
		return NOT_INITIALIZED;
	*pointer = 0x700000000000;
	return syscall6(SYS_ioctl, device, RM_ALLOC, (long)&parameters, 0, 0, 0) < 0 ? 999 : 0;
}

/* Compiled with sibling calls: it is a jump. */
EXPORTED int cuMemAlloc(uint64_t *pointer, unsigned long size)
{
	return cuMemAlloc_v2(pointer, size);
}

EXPORTED int cuMemFree_v2(uint64_t pointer)
{
	struct release parameters = { .object = (uint32_t)pointer };

	if (device < 0)
		return NOT_INITIALIZED;
	return syscall6(SYS_ioctl, device, RM_FREE, (long)&parameters, 0, 0, 0) < 0 ? 999 : 0;
}

EXPORTED int cuMemcpyHtoD_v2_ptds(uint64_t to, const void *from, unsigned long size)
{
	return to && from && size ? control(0x20801303 ^ 0xff) : INVALID_VALUE;
}

/* Begins with a push, as large functions do, and most of the driver's. */
__attribute__((optimize("O0"))) EXPORTED int cuMemcpyHtoDAsync_v2_ptsz(uint64_t to, const void *from,
								       unsigned long size, void *stream)
{
	(void)stream;
	return to && from && size ? 0 : INVALID_VALUE;
}

EXPORTED int cuCtxSynchronize(void)
{
	return control(0x20801701);
}

EXPORTED int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *status)
{
	static const struct {
		const char *name;
		void *function;
	} known[] = {
		{ "cuInit", cuInit },
		{ "cuDeviceGetAttribute", cuDeviceGetAttribute },
		{ "cuMemAlloc", cuMemAlloc },
		{ "cuMemFree", cuMemFree_v2 },
		{ "cuMemcpyHtoD", cuMemcpyHtoD_v2_ptds },
		{ "cuMemcpyHtoDAsync", cuMemcpyHtoDAsync_v2_ptsz },
		{ "cuCtxSynchronize", cuCtxSynchronize },
	};

	(void)version;
	(void)flags;
	(void)status;
	for (unsigned int i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (strcmp(known[i].name, name) == 0) {
			*function = known[i].function;
			return 0;
		}
	}
	return NOT_FOUND;
}
