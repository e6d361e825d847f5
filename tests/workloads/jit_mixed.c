/* Machine code made at run time, which keeps frame pointers, between compiled code that keeps none.
 *
 *	jit_mixed [--wait] [--linger] [MILLISECONDS=2000]
 *
 * Truth: each thread works in rounds and then stands still. `wait-N` (0 … 2): 2 + N times through_jit → (made code) →
 * called_back, the last of which calls doze → nanosleep; `busy-N` (0 … 1): the same, spinning in made code that calls
 * called_back for nothing, so that it is taken off the CPU anywhere. The made code saves the frame pointer, sets it up and
 * saves another register, as compilers of Java, JavaScript and Julia do; it has no unwind table and is in no file. */
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include "workload.h"

#define WAITERS 3
#define BUSY 2
#define THREADS (WAITERS + BUSY)

struct call {
	long left;
	struct wait_truth *w;
};

/* call(function, argument) and call_often(function, argument): a thousand times. */
typedef long made_code_t(long (*function)(struct call *), struct call *argument);

static made_code_t *call_first, *call_often;
static atomic_int tids[THREADS];

#if defined(__x86_64__)
static const unsigned char once[] = {
	0x55,			/* push %rbp */
	0x48, 0x89, 0xe5,	/* mov %rsp,%rbp */
	0x53,			/* push %rbx */
	0x50,			/* push %rax: aligns */
	0x48, 0x89, 0xf8,	/* mov %rdi,%rax */
	0x48, 0x89, 0xf7,	/* mov %rsi,%rdi */
	0xff, 0xd0,		/* call *%rax */
	0x48, 0x8b, 0x5d, 0xf8, /* mov -8(%rbp),%rbx */
	0xc9,			/* leave */
	0xc3,			/* ret */
};
static const unsigned char often[] = {
	0x55,			      /* push %rbp */
	0x48, 0x89, 0xe5,	      /* mov %rsp,%rbp */
	0x53,			      /* push %rbx */
	0x41, 0x54,		      /* push %r12 */
	0x41, 0x55,		      /* push %r13 */
	0x50,			      /* push %rax: aligns */
	0x49, 0x89, 0xfc,	      /* mov %rdi,%r12 */
	0x49, 0x89, 0xf5,	      /* mov %rsi,%r13 */
	0xbb, 0xe8, 0x03, 0x00, 0x00, /* mov $1000,%ebx */
	0x4c, 0x89, 0xef,	      /* mov %r13,%rdi */
	0x41, 0xff, 0xd4,	      /* call *%r12 */
	0xff, 0xcb,		      /* dec %ebx */
	0x75, 0xf6,		      /* jne: the mov before the call */
	0x59,			      /* pop %rcx */
	0x41, 0x5d,		      /* pop %r13 */
	0x41, 0x5c,		      /* pop %r12 */
	0x5b,			      /* pop %rbx */
	0x5d,			      /* pop %rbp */
	0xc3,			      /* ret */
};
#elif defined(__aarch64__)
static const unsigned int once[] = {
	0xa9bf7bfd, /* stp x29,x30,[sp,#-16]! */
	0x910003fd, /* mov x29,sp */
	0xaa0003e8, /* mov x8,x0 */
	0xaa0103e0, /* mov x0,x1 */
	0xd63f0100, /* blr x8 */
	0xa8c17bfd, /* ldp x29,x30,[sp],#16 */
	0xd65f03c0, /* ret */
};
#define often once
#endif

static NAMED long doze(struct wait_truth *w)
{
	long ns = stay_ns();
	struct timespec length = { ns / 1000000000, ns % 1000000000 };
	struct mark mark = wait_begins();

	nanosleep(&length, NULL);
	wait_ends(w, mark);
	return 1;
}

static NAMED long called_back(struct call *call);

static NAMED long through_jit(struct call *call)
{
	volatile long locals[5];
	long result;

	locals[0] = call->left;
	result = call_first(called_back, call);
	return result + locals[0];
}

static NAMED long called_back(struct call *call)
{
	long result;

	if (--call->left == 0)
		return call->w ? doze(call->w) : 0;
	if (call->left < 0) /* from call_often */
		return 0;
	result = through_jit(call);
	KEEP_FRAME();
	return result + 1;
}

static NAMED long spin_in_jit(struct call *call)
{
	long result = call_often(called_back, call);

	KEEP_FRAME();
	return result + 1;
}

static void *thread_main(void *argument)
{
	int i = (int)(size_t)argument;
	bool waits = i < WAITERS;
	struct wait_truth *w;
	char name[32];

	snprintf(name, sizeof(name), waits ? "wait-%d" : "busy-%d", waits ? i : i - WAITERS);
	prctl(PR_SET_NAME, name);
	w = new_wait(name);
	atomic_store(&tids[i], w->tid);
	await_start();
	while (waits)
		through_jit(&(struct call){ 2 + i, w });
	while (stay_ns() < 1000000000) {
		through_jit(&(struct call){ 3, NULL });
		spin_in_jit(&(struct call){ 0, NULL });
	}
	pause();
	return NULL;
}

static void make_code(void)
{
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		die("mmap");
	memcpy(page + 64, once, sizeof(once));
	memcpy(page + 256, often, sizeof(often));
	if (mprotect(page, 4096, PROT_READ | PROT_EXEC))
		die("mprotect");
	__builtin___clear_cache(page, page + 4096);
	call_first = (made_code_t *)(page + 64);
	call_often = (made_code_t *)(page + 256);
}

int main(int argc, char **argv)
{
	int ready[THREADS + 2] = { getpid() };
	pthread_t thread;
	uint64_t begin;
	long ms;

	workload_begin(argc, argv);
	ms = workload_number(0, 2000, (LIMIT_SECONDS - 10) * 1000);
	make_code();
	for (size_t i = 0; i < THREADS; i++)
		if (pthread_create(&thread, NULL, thread_main, (void *)i))
			die("pthread_create");
	for (int i = 0; i < THREADS; i++)
		while (!(ready[i + 1] = atomic_load(&tids[i])))
			sched_yield();
	open_gate(NULL, ready);
	begin = clock_ns(CLOCK_MONOTONIC);
	usleep((useconds_t)ms * 1000);
	hold_still(ready + 1);
	workload_end(begin);
	_exit(0); /* the others stay where they are */
}
