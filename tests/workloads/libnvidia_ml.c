// Stand-in for NVIDIA's management library: functions and numbers of nvml.h. Variables of the environment choose what
// it does: NVML_INIT (error of the start), NVML_GPUS (a number), NVML_NAME (name of a GPU), NVML_HANG (looks after
// which it hangs), NVML_ERROR (error of each look).

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))
#define NOT_SUPPORTED 3

struct utilization {
	unsigned gpu, memory;
};

struct memory {
	unsigned long long total, free, used;
};

static int looks;

static int chosen(const char *name, int otherwise)
{
	const char *text = getenv(name);
	return text ? atoi(text) : otherwise;
}

static unsigned index_of(void *device)
{
	return (unsigned)(unsigned long)device - 1;
}

API int nvmlInit_v2(void)
{
	if (chosen("NVML_HANG", -1) == 0) {
		pause();
	}
	return chosen("NVML_INIT", 0);
}

API int nvmlDeviceGetCount_v2(unsigned *count)
{
	*count = (unsigned)chosen("NVML_GPUS", 2);
	return 0;
}

API int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
	*device = (void *)(unsigned long)(index + 1);
	return 0;
}

API int nvmlDeviceGetName(void *device, char *name, unsigned length)
{
	(void)device;
	const char *text = getenv("NVML_NAME");
	strncpy(name, text ? text : "NVIDIA H100 80GB HBM3", length); // hostile: a long one has no end
	return 0;
}

// Minors need not be in the order of indices.
API int nvmlDeviceGetMinorNumber(void *device, unsigned *minor)
{
	*minor = 7 - index_of(device);
	return 0;
}

API int nvmlDeviceGetMaxClockInfo(void *device, int kind, unsigned *clock)
{
	(void)device;
	(void)kind;
	*clock = 1980;
	return 0;
}

API int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *power)
{
	(void)device;
	*power = 700000;
	return 0;
}

API int nvmlDeviceGetUtilizationRates(void *device, struct utilization *used)
{
	int last = chosen("NVML_HANG", -1);
	if (last > 0 && looks++ >= last) {
		pause();
	}
	used->gpu = index_of(device) ? 90 : 12;
	used->memory = 5;
	return chosen("NVML_ERROR", 0);
}

API int nvmlDeviceGetMemoryInfo(void *device, struct memory *memory)
{
	(void)device;
	memory->total = 80ULL << 30;
	memory->used = 60ULL << 30;
	memory->free = 20ULL << 30;
	return chosen("NVML_ERROR", 0);
}

API int nvmlDeviceGetClockInfo(void *device, int kind, unsigned *clock)
{
	(void)device;
	(void)kind;
	*clock = 1200;
	return chosen("NVML_ERROR", 0);
}

API int nvmlDeviceGetPowerUsage(void *device, unsigned *power)
{
	(void)device;
	(void)power;
	return NOT_SUPPORTED;
}

API int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons)
{
	*reasons = index_of(device) ? 0x1 : 0x4 | 0x8000;
	return chosen("NVML_ERROR", 0);
}
