/* The shared library of `shares`. */
#include "burn.h"
#include "syscall6.h"

static NAMED void library_inner(uint64_t ns)
{
	burn(ns);
}

__attribute__((visibility("default"))) NAMED void library_spin(uint64_t ns)
{
	library_inner(ns);
	KEEP_FRAME();
}
