/* A stand-in for CUDA's runtime library, libcudart.so.12: some of its functions, under their names.
 *
 * As the real one does, it loads libcuda.so.1 when it is first needed and calls it by pointers that cuGetProcAddress
 * returned. It measures these calls (standin_driver_calls()). It says nothing about what CUDA does. A size of 0 gives
 * cudaErrorMemoryAllocation. cudaLaunchHostFunc calls its callback itself, which may leave it by longjmp(). */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <linux/futex.h>
#include "standin_cuda.h"
#include "standin_nccl.h"
#include "syscall6.h"

#define EXPORTED __attribute__((visibility("default"), noinline))

enum {
	GET_ATTRIBUTE,
	ALLOC,
	FREE,
	COPY,
	COPY_ASYNC,
	SYNCHRONIZE,
	INIT,
	GET_NAME,
	TOTAL_MEM,
	GET_UUID,
	FUNCTIONS
};

static const char *const wanted[FUNCTIONS] = {
	"cuDeviceGetAttribute", "cuMemAlloc", "cuMemFree",	 "cuMemcpyHtoD",     "cuMemcpyHtoDAsync",
	"cuCtxSynchronize",	"cuInit",     "cuDeviceGetName", "cuDeviceTotalMem", "cuDeviceGetUuid"
};
/* The names of the functions that these lead to. */
static const char *const called[FUNCTIONS] = {
	"cuDeviceGetAttribute", "cuMemAlloc", "cuMemFree_v2",	 "cuMemcpyHtoD_v2_ptds", "cuMemcpyHtoDAsync_v2_ptsz",
	"cuCtxSynchronize",	"cuInit",     "cuDeviceGetName", "cuDeviceTotalMem_v2",	 "cuDeviceGetUuid_v2"
};
static void *functions[FUNCTIONS];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static __thread struct standin_truth truth[FUNCTIONS + 1];

static void load(void)
{
	int (*find)(const char *, void **, int, uint64_t, int *);
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);

	if (!driver) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	*(void **)&find = dlsym(driver, "cuGetProcAddress_v2");
	for (int i = 0; i < FUNCTIONS; i++)
		if (find(wanted[i], &functions[i], 12000, 0, NULL))
			abort();
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Calls one of the driver's functions, which take up to four arguments. */
static int call(int which, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	int (*function)(uint64_t, uint64_t, uint64_t, uint64_t);
	uint64_t begin, ns;
	int result;

	pthread_once(&once, load);
	if (which != INIT && !truth[INIT].calls)
		call(INIT, 0, 0, 0, 0);
	*(void **)&function = functions[which];
	begin = now();
	result = function(a, b, c, d);
	ns = now() - begin;
	truth[which].ns += ns;
	if (ns > truth[which].longest)
		truth[which].longest = ns;
	truth[which].calls++;
	truth[which].name = called[which];
	return result;
}

EXPORTED struct standin_truth *standin_driver_calls(void)
{
	return truth;
}

EXPORTED int cudaMalloc(void **pointer, unsigned long size)
{
	uint64_t found = 0;
	int error = call(ALLOC, (uint64_t)(uintptr_t)&found, size, 0, 0);

	*pointer = (void *)(uintptr_t)found;
	return error ? 2 : 0;
}

EXPORTED int cudaFree(void *pointer)
{
	return call(FREE, (uint64_t)(uintptr_t)pointer, 0, 0, 0);
}

EXPORTED int cudaGetDeviceProperties_v2(void *properties, int device)
{
	int error = 0, *values = properties;

	for (int i = 0; i < 3 && !error; i++)
		error = call(GET_ATTRIBUTE, (uint64_t)(uintptr_t)&values[i], (uint64_t)i, (uint64_t)device, 0);
	return error;
}

/* Asks for more than the version above: seven controls, of which two take the API's lock for write. */
EXPORTED int cudaGetDeviceProperties(struct standin_properties *properties, int device)
{
	static const int attributes[] = { 1, CLOCK_RATE, MULTIPROCESSOR_COUNT, ECC_ENABLED };
	uint64_t number = (uint64_t)device;
	int error = call(GET_NAME, (uint64_t)(uintptr_t)properties->name, sizeof(properties->name), number, 0);

	if (!error)
		error = call(TOTAL_MEM, (uint64_t)(uintptr_t)&properties->memory, number, 0, 0);
	if (!error)
		error = call(GET_UUID, (uint64_t)(uintptr_t)properties->uuid, number, 0, 0);
	for (int i = 0; i < 4 && !error; i++)
		error = call(GET_ATTRIBUTE, (uint64_t)(uintptr_t)&properties->attributes[i], (uint64_t)attributes[i],
			     number, 0);
	return error;
}

EXPORTED int cudaDeviceGetAttribute(int *value, int attribute, int device)
{
	return call(GET_ATTRIBUTE, (uint64_t)(uintptr_t)value, (uint64_t)attribute, (uint64_t)device, 0);
}

EXPORTED int cudaMemcpy(void *to, const void *from, unsigned long size, int kind)
{
	(void)kind;
	return call(COPY, (uint64_t)(uintptr_t)to, (uint64_t)(uintptr_t)from, size, 0);
}

EXPORTED int cudaMemcpyAsync_ptsz(void *to, const void *from, unsigned long size, int kind, void *stream)
{
	(void)kind;
	return call(COPY_ASYNC, (uint64_t)(uintptr_t)to, (uint64_t)(uintptr_t)from, size, (uint64_t)(uintptr_t)stream);
}

EXPORTED int cudaDeviceSynchronize(void)
{
	return call(SYNCHRONIZE, 0, 0, 0, 0);
}

EXPORTED int cudaLaunchHostFunc(void *stream, standin_callback callback, void *data)
{
	(void)stream;
	callback(data);
	return 0;
}

EXPORTED int cudaStreamCreate(struct standin_stream **stream)
{
	*stream = calloc(1, sizeof(**stream));
	return *stream ? 0 : 2;
}

/* Waits for what the stand-in for NCCL does: nothing else is done in streams. */
EXPORTED int cudaStreamSynchronize(struct standin_stream *stream)
{
	uint32_t pending;

	while (stream && (pending = atomic_load(&stream->pending)))
		syscall6(SYS_futex, (long)&stream->pending, FUTEX_WAIT, (long)pending, 0, 0, 0);
	return 0;
}

EXPORTED int cudaStreamBeginCapture(struct standin_stream *stream, int mode)
{
	(void)mode;
	stream->captured = calloc(1, sizeof(*stream->captured));
	return stream->captured ? 0 : 2;
}

EXPORTED int cudaStreamEndCapture(struct standin_stream *stream, struct standin_graph **graph)
{
	*graph = stream->captured;
	stream->captured = NULL;
	return *graph ? 0 : 1;
}

EXPORTED int cudaGraphInstantiate(struct standin_graph **made, struct standin_graph *graph, uint64_t flags)
{
	(void)flags;
	*made = graph;
	return 0;
}

EXPORTED int cudaGraphLaunch(struct standin_graph *graph, struct standin_stream *stream)
{
	int error = 0;

	(void)stream;
	for (int i = 0; i < graph->number && !error; i++)
		error = graph->steps[i].launch(graph->steps[i].comm, graph->steps[i].task);
	return error;
}
