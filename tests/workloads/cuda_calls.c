/* Processes call functions of the stand-ins for CUDA's libraries (libcudart.c, libcuda.c): no GPU is needed, and nothing
 * is said about one.
 *
 *	cuda_calls [--wait] [--linger] plain|fork|leave [PROCESSES=1] [CALLS=50] [HOLD_US=500]
 *
 * Truth: a record per function, process and thread with its number of calls and their time, measured around each. The
 * device answers one ioctl at a time, HOLD_US after it came.
 *	plain: cudaMalloc, cudaGetDeviceProperties_v2 (three calls of the driver), copies, cudaDeviceSynchronize, cudaFree;
 *	one cudaMalloc in ten fails.
 *	fork: the same, and in the middle each process forks one that does the same in its name.
 *	leave: cudaMalloc, and cudaLaunchHostFunc whose callback leaves it by longjmp(), every second time.
 * `cuda_calls` calls the runtime through its PLT; `cuda_late` loads both libraries after the start and waits half a second
 * before it calls them; `cuda_static` has the runtime linked in. */
#include <dlfcn.h>
#include <setjmp.h>
#include <sys/wait.h>
#include "held_device.h"
#include "standin_cuda.h"
#include "workload.h"

#define MAX_PROCESSES 16
#define FAILS_EACH 10

#ifdef LATE
#define FUNCTION(name) static __typeof__(name) *late_##name;
#else
#define FUNCTION(name) static __typeof__(name) *const late_##name = name;
#endif
/* Through pointers only in cuda_late: the compiler replaces constant ones by calls. */
FUNCTION(cudaMalloc)
FUNCTION(cudaFree)
FUNCTION(cudaGetDeviceProperties_v2)
FUNCTION(cudaMemcpy)
FUNCTION(cudaMemcpyAsync_ptsz)
FUNCTION(cudaDeviceSynchronize)
FUNCTION(cudaLaunchHostFunc)
FUNCTION(standin_driver_calls)

static jmp_buf outside;

static void load_runtime(void)
{
#ifdef LATE
	struct timespec half = { 0, 500000000 };
	void *runtime = dlopen("libcudart.so.12", RTLD_NOW);

	if (!runtime)
		die(dlerror());
#define FIND(name) *(void **)&late_##name = dlsym(runtime, #name)
	FIND(cudaMalloc);
	FIND(cudaFree);
	FIND(cudaGetDeviceProperties_v2);
	FIND(cudaMemcpy);
	FIND(cudaMemcpyAsync_ptsz);
	FIND(cudaDeviceSynchronize);
	FIND(cudaLaunchHostFunc);
	FIND(standin_driver_calls);
	dlopen("libcuda.so.1", RTLD_NOW); /* else the first call loads it */
	nanosleep(&half, NULL);
#endif
}

#define MEASURED(record, expected, call)                                                                               \
	do {                                                                                                           \
		struct mark mark = wait_begins();                                                                      \
		int result = call;                                                                                     \
                                                                                                                       \
		call_ends(record, mark);                                                                               \
		if (result != (expected)) {                                                                            \
			fprintf(stderr, "%s: %d\n", record->function, result);                                         \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

static void tell_driver_calls(void)
{
	struct standin_truth *found = late_standin_driver_calls();

	for (int i = 0; i < STANDIN_DRIVER_CALLS - 1; i++) {
		struct wait_truth *w;

		if (!found[i].calls)
			continue;
		w = new_wait(found[i].name);
		w->calls = found[i].calls;
		w->ns = found[i].ns;
		w->longest = found[i].longest;
	}
}

static void use(long calls)
{
	struct wait_truth *alloc = new_wait("cudaMalloc"), *release = new_wait("cudaFree");
	struct wait_truth *query = new_wait("cudaGetDeviceProperties_v2"), *copy = new_wait("cudaMemcpy");
	struct wait_truth *later = new_wait("cudaMemcpyAsync_ptsz"), *wait = new_wait("cudaDeviceSynchronize");
	void *pointer = NULL;
	int properties[8];
	char data[64] = "";

	for (long i = 0; i < calls; i++) {
		bool fails = i % FAILS_EACH == FAILS_EACH - 1;

		MEASURED(alloc, fails ? 2 : 0, late_cudaMalloc(&pointer, fails ? 0 : sizeof(data)));
		if (fails)
			continue;
		MEASURED(query, 0, late_cudaGetDeviceProperties_v2(properties, 0));
		MEASURED(copy, 0, late_cudaMemcpy(pointer, data, sizeof(data), 1));
		MEASURED(later, 0, late_cudaMemcpyAsync_ptsz(pointer, data, sizeof(data), 1, NULL));
		MEASURED(wait, 0, late_cudaDeviceSynchronize());
		MEASURED(release, 0, late_cudaFree(pointer));
	}
	tell_driver_calls();
}

static void jump_out(void *data)
{
	if (*(long *)data % 2)
		longjmp(outside, 1);
}

static void leave(long calls)
{
	struct wait_truth *alloc = new_wait("cudaMalloc"), *launch = new_wait("cudaLaunchHostFunc");
	static volatile long i; /* longjmp() keeps it */
	void *pointer;

	for (i = 0; i < calls; i++) {
		if (!setjmp(outside)) {
			long number = i;

			MEASURED(launch, 0, late_cudaLaunchHostFunc(NULL, jump_out, &number));
		}
		MEASURED(alloc, 0, late_cudaMalloc(&pointer, 1));
	}
	tell_driver_calls();
}

static void work(const char *what, long calls)
{
	load_runtime();
	if (strcmp(what, "leave") == 0) {
		leave(calls);
		return;
	}
	if (strcmp(what, "fork") == 0) {
		int status, child = fork();

		if (child < 0)
			die("fork");
		if (child == 0) {
			use(calls);
			_exit(0);
		}
		if (waitpid(child, &status, 0) != child || status != 0)
			die("child");
	}
	use(calls);
}

int main(int argc, char **argv)
{
	char folder[] = "/tmp/cuda_calls.XXXXXX", path[64];
	int pids[MAX_PROCESSES + 1] = { 0 }, server;
	long processes, calls;
	const char *what;
	uint64_t begin;

	workload_begin(argc, argv);
	what = workload_argc > 0 ? workload_argv[0] : "plain";
	processes = workload_number(1, 1, MAX_PROCESSES);
	calls = workload_number(2, 50, 1000000);
	server = start_held_device(folder, workload_number(3, 500, 9999999));
	snprintf(path, sizeof(path), "%s/file", folder);
	setenv(STANDIN_DEVICE, path, 1);
#ifndef LATE
	if (!dlopen("libcuda.so.1", RTLD_NOW))
		die(dlerror());
#endif
	for (int i = 0; i < processes; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			die("fork");
		if (pids[i])
			continue;
		workload_child();
		await_start();
		work(what, calls);
		_exit(0);
	}
	open_gate(pids, pids);
	begin = clock_ns(CLOCK_MONOTONIC);
	for (int i = 0; i < processes; i++) {
		int status;

		if (waitpid(pids[i], &status, 0) != pids[i] || status != 0) {
			fprintf(stderr, "cuda_calls: process %d failed\n", i);
			return 1;
		}
	}
	end_held_device(folder, server);
	return workload_end(begin);
}
