/* Threads or processes that need one lock of the C library, which another one holds for long.
 *
 *	mutexes [--wait] [--linger] KIND [WAITERS=8] [ROUNDS=20] [HOLD_US=10000]
 *
 * KIND: static (a mutex in the program's data), pi, rwlock (waiters are readers), condition (waiters wait to be told, not
 * for a lock): threads. shared, robust: a mutex in shared memory, between processes. inode: processes that write to one
 * file, in write_file(), which the kernel lets one at a time do. table: threads that open and close descriptors, in
 * use_table(), for which the kernel has a spinlock. memory: threads that map memory, touch it and unmap it, in use_memory():
 * the kernel lets one at a time change the process's memory.
 *
 * Truth: each of "waiter-I" takes the lock again and again in take_lock(), and gives it back at once in give_lock();
 * "holder" keeps it in hold(), asleep, for HOLD_US ROUNDS times. */
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include "workload.h"

#define MAX_WAITERS 32

struct board_of_locks {
	char before[64];
	pthread_mutex_t mutex;
	atomic_int over;
};

static struct board_of_locks *at;
struct board_of_locks lock_table; /* a symbol with a name */
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t told = PTHREAD_COND_INITIALIZER;
static bool readers, condition, table, memory;
static long rounds, hold_us;
static int file;
static char content[4 << 20];
static atomic_int tids[MAX_WAITERS + 1];

static NAMED void take_lock(struct wait_truth *w, bool writer)
{
	long before = voluntary_switches();
	uint64_t begin = clock_ns(CLOCK_MONOTONIC);
	int failed;

	if (readers)
		failed = writer ? pthread_rwlock_wrlock(&rwlock) : pthread_rwlock_rdlock(&rwlock);
	else
		failed = pthread_mutex_lock(&at->mutex);
	if (failed)
		die("lock");
	w->ns += clock_ns(CLOCK_MONOTONIC) - begin;
	w->blocks += voluntary_switches() - before;
	w->calls++;
	KEEP_FRAME();
}

static NAMED void give_lock(void)
{
	if (readers)
		pthread_rwlock_unlock(&rwlock);
	else
		pthread_mutex_unlock(&at->mutex);
	KEEP_FRAME();
}

static NAMED void hold(struct wait_truth *w)
{
	measured_sleep(w, hold_us * 1000);
	KEEP_FRAME();
}

static NAMED void rest(struct wait_truth *w, long ns)
{
	measured_sleep(w, ns);
	KEEP_FRAME();
}

static void *holder(void *unused)
{
	struct wait_truth *waits = new_wait("take_lock"), *holds = new_wait("hold"), *rests = new_wait("rest");
	struct thread_truth begin;

	prctl(PR_SET_NAME, "holder");
	atomic_store(&tids[0], waits->tid);
	await_start();
	begin = thread_now();
	for (long i = 0; i < rounds; i++) {
		take_lock(waits, true);
		hold(holds);
		if (condition)
			pthread_cond_broadcast(&told);
		give_lock();
		rest(rests, 1000000);
	}
	atomic_store(&at->over, 1);
	if (condition)
		for (int i = 0; i < 100; i++, usleep(1000))
			pthread_cond_broadcast(&told);
	thread_done(&begin);
	return unused;
}

static NAMED void await_told(void)
{
	pthread_mutex_lock(&at->mutex);
	if (!atomic_load(&at->over))
		pthread_cond_wait(&told, &at->mutex);
	pthread_mutex_unlock(&at->mutex);
	KEEP_FRAME();
}

static void *waiter(void *number)
{
	struct wait_truth *waits = new_wait("take_lock"), *rests = new_wait("rest");
	struct thread_truth begin;
	char name[16];

	snprintf(name, sizeof(name), "waiter-%ld", (long)number);
	prctl(PR_SET_NAME, name);
	atomic_store(&tids[(long)number], waits->tid);
	await_start();
	begin = thread_now();
	while (!atomic_load(&at->over)) {
		if (condition) {
			await_told();
			continue;
		}
		take_lock(waits, false);
		give_lock();
		rest(rests, 500000);
	}
	thread_done(&begin);
	return NULL;
}

static NAMED void write_file(struct wait_truth *w)
{
	measured(w, SYS_pwrite64, file, (long)content, sizeof(content), 0, 0, 0);
	KEEP_FRAME();
}

static void writer(void)
{
	struct wait_truth *writes = new_wait("write_file");
	struct thread_truth begin;

	prctl(PR_SET_NAME, "writer");
	await_start();
	begin = thread_now();
	for (long i = 0; i < rounds; i++)
		write_file(writes);
	thread_done(&begin);
}

static NAMED void use_table(void)
{
	long copy = syscall6(SYS_dup, 0, 0, 0, 0, 0, 0);

	syscall6(SYS_close, copy, 0, 0, 0, 0, 0);
	KEEP_FRAME();
}

static NAMED void use_memory(void)
{
	long size = 1 << 20;
	char *mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mapped == MAP_FAILED)
		die("mmap");
	for (long i = 0; i < size; i += 4096)
		mapped[i] = 1;
	munmap(mapped, size);
	KEEP_FRAME();
}

static void *memory_user(void *number)
{
	struct thread_truth begin;

	atomic_store(&tids[(long)number], (int)syscall6(SYS_gettid, 0, 0, 0, 0, 0, 0));
	await_start();
	begin = thread_now();
	for (long i = 0; i < rounds; i++)
		use_memory();
	thread_done(&begin);
	return NULL;
}

static void *table_user(void *number)
{
	struct thread_truth begin;

	atomic_store(&tids[(long)number], (int)syscall6(SYS_gettid, 0, 0, 0, 0, 0, 0));
	await_start();
	begin = thread_now();
	for (long i = 0; i < rounds * 1000; i++)
		use_table();
	thread_done(&begin);
	return NULL;
}

static void make_mutex(bool shared, bool robust, bool pi)
{
	pthread_mutexattr_t how;

	pthread_mutexattr_init(&how);
	pthread_mutexattr_setpshared(&how, shared ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE);
	if (robust)
		pthread_mutexattr_setrobust(&how, PTHREAD_MUTEX_ROBUST);
	if (pi)
		pthread_mutexattr_setprotocol(&how, PTHREAD_PRIO_INHERIT);
	if (pthread_mutex_init(&at->mutex, &how))
		die("pthread_mutex_init");
}

static int run_processes(long waiters)
{
	int pids[MAX_WAITERS + 2] = { 0 };
	uint64_t begin;

	for (long i = 0; i <= waiters; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			die("fork");
		if (pids[i] == 0) {
			workload_child();
			if (file)
				writer();
			else if (i == 0)
				holder(NULL);
			else
				waiter((void *)i);
			_exit(0);
		}
	}
	open_gate(pids, pids);
	begin = clock_ns(CLOCK_MONOTONIC);
	for (long i = 0; i <= waiters; i++) {
		int status;

		if (waitpid(pids[i], &status, 0) != pids[i] || status != 0) {
			fprintf(stderr, "mutexes: process %ld failed\n", i);
			return 1;
		}
	}
	return workload_end(begin);
}

static void *(*runs(long number))(void *)
{
	if (table)
		return table_user;
	if (memory)
		return memory_user;
	return number ? waiter : holder;
}

static int run_threads(long waiters)
{
	pthread_t threads[MAX_WAITERS + 1];
	int all[MAX_WAITERS + 3] = { getpid() };
	uint64_t begin;

	for (long i = 0; i <= waiters; i++) {
		if (pthread_create(&threads[i], NULL, runs(i), (void *)i))
			die("pthread_create");
		while (!(all[i + 1] = atomic_load(&tids[i])))
			usleep(1000);
	}
	open_gate(NULL, all);
	begin = clock_ns(CLOCK_MONOTONIC);
	for (long i = 0; i <= waiters; i++)
		pthread_join(threads[i], NULL);
	return workload_end(begin);
}

int main(int argc, char **argv)
{
	const char *kind;
	bool processes;
	long waiters;

	workload_begin(argc, argv);
	kind = workload_argc > 0 ? workload_argv[0] : "static";
	waiters = workload_number(1, 8, MAX_WAITERS);
	rounds = workload_number(2, 20, 100000);
	hold_us = workload_number(3, 10000, 1000000);
	processes = !strcmp(kind, "shared") || !strcmp(kind, "robust") || !strcmp(kind, "inode");
	if (!strcmp(kind, "inode") && (file = memfd_create("written", 0)) < 0)
		die("memfd_create");
	readers = !strcmp(kind, "rwlock");
	condition = !strcmp(kind, "condition");
	table = !strcmp(kind, "table");
	memory = !strcmp(kind, "memory");
	at = &lock_table;
	if (processes) {
		int shared = memfd_create("locks", 0);

		if (shared < 0 || ftruncate(shared, 8192))
			die("memfd_create");
		at = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, shared, 0);
		if (at == MAP_FAILED)
			die("mmap");
		at = (void *)((char *)at + 4096);
	}
	make_mutex(processes, !strcmp(kind, "robust"), !strcmp(kind, "pi"));
	return processes ? run_processes(waiters) : run_threads(waiters);
}
