/* What the stand-ins for CUDA's libraries tell of themselves. */
#ifndef STALLSCOPE_STANDIN_CUDA_H
#define STALLSCOPE_STANDIN_CUDA_H

#include <stdint.h>

#define STANDIN_DEVICE "STANDIN_DEVICE" /* environment variable: the device's path */
#define STANDIN_DRIVER_CALLS 11

/* Attributes of a device for which a control of its own is called. */
#define CLOCK_RATE 13
#define MULTIPROCESSOR_COUNT 16
#define ECC_ENABLED 32

/* The driver's functions that the runtime has called in this thread, as it measured each. */
struct standin_truth {
	const char *name; /* NULL: the end */
	long calls;
	uint64_t ns, longest;
};

struct standin_properties {
	char name[64], uuid[16];
	unsigned long memory;
	int attributes[4];
};

typedef void (*standin_callback)(void *);

struct standin_truth *standin_driver_calls(void);
int cudaMalloc(void **pointer, unsigned long size);
int cudaFree(void *pointer);
int cudaGetDeviceProperties(struct standin_properties *properties, int device);
int cudaGetDeviceProperties_v2(void *properties, int device);
int cudaDeviceGetAttribute(int *value, int attribute, int device);
int cudaMemcpy(void *to, const void *from, unsigned long size, int kind);
int cudaMemcpyAsync_ptsz(void *to, const void *from, unsigned long size, int kind, void *stream);
int cudaDeviceSynchronize(void);
int cudaLaunchHostFunc(void *stream, standin_callback callback, void *data);

#endif
