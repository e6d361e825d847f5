/* One of the many libraries of many_mappings: what it calls stands behind a frame of this variant's size. Compiled once per
 * VARIANT, linked under many names (Makefile). */
#include <stddef.h>

#define NAMED __attribute__((noinline, noclone, noipa))
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

NAMED long JOIN(inner_, VARIANT)(long (*callback)(void *), void *argument)
{
	volatile long locals[1 + VARIANT * 9];
	long result;

	locals[VARIANT * 9] = VARIANT;
	result = callback(argument);
	return result + locals[VARIANT * 9];
}

__attribute__((visibility("default"))) NAMED long pass_through(long (*callback)(void *), void *argument)
{
	volatile char locals[24 + (7 - VARIANT) * 40];
	long result;

	locals[sizeof(locals) - 1] = 1;
	result = JOIN(inner_, VARIANT)(callback, argument);
	return result + locals[sizeof(locals) - 1];
}
