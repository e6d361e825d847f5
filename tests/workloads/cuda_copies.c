/* Calls functions with the names and the arguments of CUDA's that copy memory. They copy nothing; it is for what a tracer
 * reads from their arguments.
 *
 *	cuda_copies [--wait] [--linger] [ROUNDS=10]
 *
 * Each round makes the copies that are in main(); there is no other truth.
 * cudaMemcpyAsync, whose direction is by address, calls cuMemcpyDtoHAsync_v2: one copy. cuMemcpyDtoD_v2 fails. */
#include <stdint.h>
#include "workload.h"

#define SIZE 4096
#define WIDTH 96
#define HEIGHT 7
#define DEPTH 5
#define LARGE ((1UL << 32) + SIZE)

/* Exported, and called with all of their arguments. */
#define API __attribute__((noipa, visibility("default")))

struct position {
	size_t x, y, z;
};

struct pitched {
	void *pointer;
	size_t pitch, width, height;
};

struct cuda_3d { /* cudaMemcpy3DParms */
	void *from_array;
	struct position from_position;
	struct pitched from;
	void *to_array;
	struct position to_position;
	struct pitched to;
	struct position extent;
	int kind;
};

struct driver_2d { /* CUDA_MEMCPY2D, from version 2 on */
	size_t from_x, from_y;
	int from_type;
	void *from_host;
	uint64_t from_device;
	void *from_array;
	size_t from_pitch;
	size_t to_x, to_y;
	int to_type;
	void *to_host;
	uint64_t to_device;
	void *to_array;
	size_t to_pitch;
	size_t width, height;
};

struct driver_3d { /* CUDA_MEMCPY3D, from version 2 on */
	size_t from_x, from_y, from_z, from_level;
	int from_type;
	void *from_host;
	uint64_t from_device;
	void *from_array, *from_reserved;
	size_t from_pitch, from_height;
	size_t to_x, to_y, to_z, to_level;
	int to_type;
	void *to_host;
	uint64_t to_device;
	void *to_array, *to_reserved;
	size_t to_pitch, to_height;
	size_t width, height, depth;
};

#define FUNCTION(name, ...)                                                                                            \
	API int name(__VA_ARGS__);                                                                                     \
	API int name(__VA_ARGS__)

#pragma GCC diagnostic ignored "-Wunused-parameter"

FUNCTION(cudaMemcpy, void *to, const void *from, size_t size, int kind)
{
	return 0;
}

FUNCTION(cuMemcpyDtoHAsync_v2, void *to, uint64_t from, size_t size, void *stream)
{
	return 0;
}

FUNCTION(cudaMemcpyAsync, void *to, const void *from, size_t size, int kind, void *stream)
{
	return cuMemcpyDtoHAsync_v2(to, (uint64_t)(uintptr_t)from, size, stream);
}

FUNCTION(cudaMemcpy2D, void *to, size_t to_pitch, const void *from, size_t pitch, size_t width, size_t height, int kind)
{
	return 0;
}

FUNCTION(cudaMemcpyToSymbol, const void *to, const void *from, size_t size, size_t offset, int kind)
{
	return 0;
}

FUNCTION(cudaMemcpyPeer, void *to, int device, const void *from, int from_device, size_t size)
{
	return 0;
}

FUNCTION(cudaMemcpy3D, const struct cuda_3d *what)
{
	return 0;
}

FUNCTION(cuMemcpyHtoD, unsigned int to, const void *from, unsigned int size)
{
	return 0;
}

FUNCTION(cuMemcpyHtoD_v2, uint64_t to, const void *from, size_t size)
{
	return 0;
}

FUNCTION(cuMemcpyDtoD_v2, uint64_t to, uint64_t from, size_t size)
{
	return 1;
}

FUNCTION(cuMemcpy2D_v2, const struct driver_2d *what)
{
	return 0;
}

FUNCTION(cuMemcpy2D, const void *what)
{
	return 0;
}

FUNCTION(cuMemcpy3D_v2, const struct driver_3d *what)
{
	return 0;
}

int main(int argc, char **argv)
{
	struct cuda_3d block = { .extent = { WIDTH, HEIGHT, DEPTH }, .kind = 3 }, array = block;
	struct driver_2d rectangle = { .from_type = 1, .to_type = 2, .width = WIDTH, .height = HEIGHT };
	struct driver_3d cuboid = { .from_type = 2, .to_type = 1, .width = WIDTH, .height = HEIGHT, .depth = DEPTH };
	uint64_t begin;
	long rounds;

	workload_begin(argc, argv);
	rounds = workload_number(0, 10, 1000000);
	array.from_array = &array;
	open_gate(NULL, NULL);
	begin = clock_ns(CLOCK_MONOTONIC);
	for (long i = 0; i < rounds; i++) {
		cudaMemcpy(NULL, NULL, LARGE, 1);
		cudaMemcpy(NULL, NULL, SIZE, 2);
		cudaMemcpy(NULL, NULL, SIZE, 77); /* no direction */
		cudaMemcpyAsync(NULL, NULL, SIZE, 4, NULL);
		cudaMemcpy2D(NULL, 128, NULL, 128, WIDTH, HEIGHT, 2);
		cudaMemcpyToSymbol(NULL, NULL, SIZE, 12, 1);
		cudaMemcpyPeer(NULL, 1, NULL, 2, SIZE);
		cudaMemcpy3D(&block);
		cudaMemcpy3D(&array);
		cuMemcpyHtoD(0, NULL, SIZE);
		cuMemcpyHtoD_v2(0, NULL, LARGE);
		cuMemcpyDtoD_v2(0, 0, SIZE);
		cuMemcpy2D_v2(&rectangle);
		cuMemcpy2D(&rectangle);
		cuMemcpy3D_v2(&cuboid);
	}
	return workload_end(begin);
}
