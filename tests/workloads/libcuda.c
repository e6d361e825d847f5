/* A stand-in for CUDA's driver library, libcuda.so.1: some of its functions, under their names.
 *
 * Each issues ioctl calls with the numbers and structures of NVIDIA's driver, to the file that STANDIN_DEVICE names
 * (held_device.c), or to the driver's own device, or a stand-in's (tests/vm/nvidia/): then cuInit makes the objects that
 * controls are called on. It says nothing about what CUDA does: which call makes which control is made up. cuMemAlloc, of
 * an old version, ends by jumping to cuMemAlloc_v2. A size of 0 is an error: CUDA_ERROR_INVALID_VALUE. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "held_device.h"
#include "standin_cuda.h"
#include "syscall6.h"

#define EXPORTED __attribute__((visibility("default"), noinline))
#define INVALID_VALUE 1
#define NOT_INITIALIZED 3
#define NO_DEVICE 100
#define NOT_FOUND 500
#define UNKNOWN_ERROR 999

#define NV01_DEVICE_0 0x80
#define NV20_SUBDEVICE_0 0x2080
#define NV_ERR_NOT_SUPPORTED 0x56
#define ROOT 0xc1d00000
#define SUBDEVICE 0x5c000002
#define DEVICE 0x5c000001

static int device = -1;
static bool has_objects;

#ifdef NO_FRAME_POINTERS
#define IN_LINE
#define IOCTL(command, argument) ioctl(device, command, argument)
#else
/* In line: the C library's function has no frame pointer, and a function that ends by calling one of these would jump. */
#define IN_LINE inline __attribute__((always_inline))
#define IOCTL(command, argument) syscall6(SYS_ioctl, device, (long)(command), (long)(argument), 0, 0, 0)
#endif

/* Only of the driver's devices, each class of controls has an object. */
static uint32_t object_of(uint32_t command)
{
	uint32_t class = command >> 16;

	if (!has_objects)
		return 0;
	return class == NV20_SUBDEVICE_0 ? SUBDEVICE : class == NV01_DEVICE_0 ? DEVICE : ROOT;
}

static IN_LINE int control(uint32_t command)
{
	struct control parameters = { .client = has_objects ? ROOT : 0,
				      .object = object_of(command),
				      .command = command };

	if (device < 0)
		return NOT_INITIALIZED;
	if (IOCTL(RM_CONTROL, &parameters) < 0)
		return UNKNOWN_ERROR;
	return has_objects && parameters.status && parameters.status != NV_ERR_NOT_SUPPORTED ? UNKNOWN_ERROR : 0;
}

/* The same behind NV_ESC_IOCTL_XFER_CMD. */
static IN_LINE int control_by_xfer(uint32_t command)
{
	struct control parameters = { .client = has_objects ? ROOT : 0,
				      .object = object_of(command),
				      .command = command };
	struct xfer xfer = { .command = NV_ESC_RM_CONTROL,
			     .size = sizeof(parameters),
			     .pointer = (uintptr_t)&parameters };

	if (device < 0)
		return NOT_INITIALIZED;
	return IOCTL(XFER, &xfer) < 0 || (has_objects && parameters.status) ? UNKNOWN_ERROR : 0;
}

static int make_object(uint32_t parent, uint32_t object, uint32_t class)
{
	struct alloc parameters = { .root = ROOT, .parent = parent, .object = object, .class = class };

	return IOCTL(RM_ALLOC, &parameters) < 0 || parameters.status;
}

static int make_objects(void)
{
	struct stat found;

	if (fstat(device, &found) || !S_ISCHR(found.st_mode) || major(found.st_rdev) != NV_MAJOR)
		return 0;
	has_objects = true;
	if (make_object(ROOT, ROOT, 0) || make_object(ROOT, DEVICE, NV01_DEVICE_0))
		return UNKNOWN_ERROR;
	return make_object(DEVICE, SUBDEVICE, NV20_SUBDEVICE_0) ? UNKNOWN_ERROR : 0;
}

EXPORTED int cuInit(unsigned int flags)
{
	const char *path = getenv(STANDIN_DEVICE);

	if (flags || !path)
		return INVALID_VALUE;
	if (device >= 0)
		return 0;
	device = open(path, O_RDWR | O_CLOEXEC);
	return device < 0 ? NO_DEVICE : make_objects();
}

EXPORTED int cuDeviceGetAttribute(int *value, int attribute, int number)
{
	*value = attribute + number;
	switch (attribute) {
	case CLOCK_RATE:
		return control(0x2080200b); /* PERF_GET_LEVEL_INFO_V2: the firmware is asked, with the API's lock */
	case MULTIPROCESSOR_COUNT:
		return control(0x801110); /* GR_GET_INFO_V2, of the device */
	case ECC_ENABLED:
		return control(0x2080012f); /* GPU_QUERY_ECC_STATUS: the firmware is asked, with the GPU's lock */
	default:
		return control(0x20800102); /* GPU_GET_INFO_V2 */
	}
}

EXPORTED int cuDeviceGetName(char *name, int length, int number)
{
	(void)number;
	strncpy(name, "a stand-in", (size_t)length);
	return control(0x20800110); /* GPU_GET_NAME_STRING */
}

EXPORTED int cuDeviceTotalMem_v2(unsigned long *bytes, int number)
{
	(void)number;
	*bytes = 1ul << 36;
	return control(0x20801303); /* FB_GET_INFO_V2 */
}

EXPORTED int cuDeviceGetUuid_v2(char *uuid, int number)
{
	memset(uuid, number, 16);
	return control_by_xfer(0x2080014a); /* GPU_GET_GID_INFO */
}

EXPORTED int cuMemAlloc_v2(uint64_t *pointer, unsigned long size)
{
	struct alloc parameters = { .class = 0x40 };

	if (!size)
		return INVALID_VALUE;
	if (device < 0)
		return NOT_INITIALIZED;
	*pointer = 0x700000000000;
	return IOCTL(RM_ALLOC, &parameters) < 0 ? UNKNOWN_ERROR : 0;
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
	return IOCTL(RM_FREE, &parameters) < 0 ? UNKNOWN_ERROR : 0;
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
		{ "cuDeviceGetName", cuDeviceGetName },
		{ "cuDeviceTotalMem", cuDeviceTotalMem_v2 },
		{ "cuDeviceGetUuid", cuDeviceGetUuid_v2 },
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
