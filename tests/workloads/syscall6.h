/* A system call made in line, and what keeps a function on the stack under its own name. */
#ifndef STALLSCOPE_SYSCALL6_H
#define STALLSCOPE_SYSCALL6_H

#include <sys/syscall.h>

/* A function of its own, under its own name, whatever the optimiser would like. */
#if defined(__clang__)
#define NAMED __attribute__((noinline))
#else
#define NAMED __attribute__((noinline, noclone, noipa))
#endif

/* Gives the function a frame, which compilers spare small ones even when told not to, and keeps a call before it from
 * becoming a jump. In a program without frame pointers only the latter. */
#ifdef NO_FRAME_POINTERS
#define KEEP_FRAME() __asm__ volatile("" : : : "memory")
#else
#define KEEP_FRAME() __asm__ volatile("" : : "r"(__builtin_frame_address(0)) : "memory")
#endif

static inline long syscall6(long number, long a, long b, long c, long d, long e, long f)
{
	KEEP_FRAME();
#if defined(__x86_64__)
	long result;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
	return x0;
#else
#error "workloads: only x86-64 and arm64"
#endif
}

#endif
