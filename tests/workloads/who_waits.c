/* Threads or processes that wait for each other in a known way.
 *
 *	who_waits [--wait] [--linger] KIND [ROUNDS=40] [MS=5]
 *
 * Truth, by KIND:
 *   gil      "runner-0" to "runner-3" take turns on one lock, as with Python's: each holds it, on a core, for MS
 *   rwlock   "reader-0" to "reader-3" read, which takes no time; "writer" has the lock for MS, then sleeps 1 ms
 *   herd     "sleeper-0" to "sleeper-7" wait on one condition, for which "caller" wakes all of them every MS; each works
 *            for 0.02 ms
 *   cycle    "left" works for MS and wakes "right", which works for MS and wakes left: each waits for the other one only
 *   driver   main waits for "worker", which calls an ioctl of a FUSE file, which process "server" answers when it has a
 *            lock that process "neighbour" holds, on a core, for MS, with a pause of 0.2 ms
 *   events   "loop" waits with epoll for a pipe, to which "feeder" writes every MS
 *   uring    "ring" waits with io_uring for a pipe, to which "feeder" writes every MS; if the kernel refuses io_uring,
 *            the status is 77
 *   twice    "taker" waits with epoll for a pipe, to which "maker" writes after it has slept for MS, and then for 1 ms: of
 *            each wait of taker, the last wait of maker has 1 ms
 *   tick     "ticker" sleeps for MS, and nobody waits for it: main works until it has ended */
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "burn.h"
#include "workload.h"

#define MAX_THREADS 16
#define REFUSED 77

static long rounds, ms;
static atomic_int tids[MAX_THREADS + 2];
static atomic_int over;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t told = PTHREAD_COND_INITIALIZER;
static atomic_int turn;
static int ends[2], ring;

/* A lock as in "Futexes Are Tricky" (U. Drepper, 2011): mutex2. */
static void lock(atomic_int *word, struct wait_truth *w)
{
	int free = 0;

	if (!atomic_compare_exchange_strong(word, &free, 1))
		while (atomic_exchange(word, 2))
			measured(w, SYS_futex, (long)word, FUTEX_WAIT, 2, 0, 0, 0);
}

static void unlock(atomic_int *word)
{
	if (atomic_exchange(word, 0) == 2)
		syscall6(SYS_futex, (long)word, FUTEX_WAKE, 1, 0, 0, 0);
}

static NAMED void work(long us)
{
	burn(us * 1000);
	KEEP_FRAME();
}

static NAMED void pause_for(struct wait_truth *w, long us)
{
	measured_sleep(w, us * 1000);
	KEEP_FRAME();
}

/* gil: whoever has it gives it to the next one and queues again. */
static NAMED void take_turn(struct wait_truth *w, int mine)
{
	int now;

	while ((now = atomic_load(&turn)) != mine)
		measured(w, SYS_futex, (long)&turn, FUTEX_WAIT_PRIVATE, now, 0, 0, 0);
	KEEP_FRAME();
}

static NAMED void give_turn(int next)
{
	atomic_store(&turn, next);
	syscall6(SYS_futex, (long)&turn, FUTEX_WAKE_PRIVATE, MAX_THREADS, 0, 0, 0);
	KEEP_FRAME();
}

static void run_turns(struct wait_truth *w, int mine, int number)
{
	for (long i = 0; i < rounds; i++) {
		take_turn(w, mine);
		work(ms * 1000);
		give_turn((mine + 1) % number);
	}
}

static NAMED void read_shared(void)
{
	pthread_rwlock_rdlock(&rwlock);
	pthread_rwlock_unlock(&rwlock);
	KEEP_FRAME();
}

static NAMED void write_shared(void)
{
	pthread_rwlock_wrlock(&rwlock);
	work(ms * 1000);
	pthread_rwlock_unlock(&rwlock);
	KEEP_FRAME();
}

static NAMED void await_call(int *seen)
{
	pthread_mutex_lock(&mutex);
	while (*seen == atomic_load(&turn) && !atomic_load(&over))
		pthread_cond_wait(&told, &mutex);
	*seen = atomic_load(&turn);
	pthread_mutex_unlock(&mutex);
	KEEP_FRAME();
}

static NAMED void call_all(bool last)
{
	pthread_mutex_lock(&mutex);
	atomic_fetch_add(&turn, 1);
	if (last)
		atomic_store(&over, 1);
	pthread_cond_broadcast(&told);
	pthread_mutex_unlock(&mutex);
	KEEP_FRAME();
}

static NAMED void feed(void)
{
	if (syscall6(SYS_write, ends[1], (long)"x", 1, 0, 0, 0) != 1)
		die("write");
	KEEP_FRAME();
}

static NAMED void await_events(struct wait_truth *w, int epoll)
{
	struct epoll_event event;
	char byte;

	if (measured(w, SYS_epoll_pwait, epoll, (long)&event, 1, -1, 0, 0) != 1 ||
	    syscall6(SYS_read, ends[0], (long)&byte, 1, 0, 0, 0) != 1)
		die("epoll");
	KEEP_FRAME();
}

struct rings {
	unsigned *tail, *mask, *array, *head;
	struct io_uring_sqe *entries;
};

static struct rings rings;

/* Whether the kernel has io_uring, and allows it. */
static bool make_ring(void)
{
	struct io_uring_params params = { 0 };
	char *queue;

	ring = (int)syscall6(SYS_io_uring_setup, 4, (long)&params, 0, 0, 0, 0);
	if (ring < 0 || !(params.features & IORING_FEAT_SINGLE_MMAP))
		return false;
	queue = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
	rings.entries = mmap(NULL, params.sq_entries * sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE, MAP_SHARED,
			     ring, IORING_OFF_SQES);
	if (queue == MAP_FAILED || rings.entries == MAP_FAILED)
		return false;
	rings.tail = (void *)(queue + params.sq_off.tail);
	rings.mask = (void *)(queue + params.sq_off.ring_mask);
	rings.array = (void *)(queue + params.sq_off.array);
	rings.head = (void *)(queue + params.cq_off.head);
	return true;
}

static NAMED void await_ring(struct wait_truth *w)
{
	unsigned index = *rings.tail & *rings.mask;
	static char byte;

	rings.entries[index] =
		(struct io_uring_sqe){ .opcode = IORING_OP_READ, .fd = ends[0], .addr = (uintptr_t)&byte, .len = 1 };
	rings.array[index] = index;
	__atomic_store_n(rings.tail, *rings.tail + 1, __ATOMIC_RELEASE);
	if (measured(w, SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, 0, 0) != 1)
		die("io_uring_enter");
	__atomic_store_n(rings.head, *rings.head + 1, __ATOMIC_RELEASE);
	KEEP_FRAME();
}

enum role {
	RUNNER,
	READER,
	WRITER,
	SLEEPER,
	CALLER,
	PARTNER,
	LOOP,
	RING,
	FEEDER,
	MAKER,
	TICKER
};

struct thread {
	char name[16];
	enum role role;
	int index, number;
	pthread_t thread;
};

static void play(const struct thread *of, struct wait_truth *w)
{
	int seen = 0, epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event = { .events = EPOLLIN };

	switch (of->role) {
	case RUNNER:
	case PARTNER:
		run_turns(w, of->index, of->number);
		break;
	case READER:
		while (!atomic_load(&over))
			read_shared();
		break;
	case WRITER:
		for (long i = 0; i < rounds; i++, pause_for(w, 1000))
			write_shared();
		atomic_store(&over, 1);
		break;
	case SLEEPER:
		while (!atomic_load(&over)) {
			await_call(&seen);
			work(20);
		}
		break;
	case CALLER:
		for (long i = 1; i <= rounds; i++) {
			pause_for(w, ms * 1000);
			call_all(i == rounds);
		}
		break;
	case LOOP:
		if (epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event))
			die("epoll_ctl");
		for (long i = 0; i < rounds; i++)
			await_events(w, epoll);
		break;
	case RING:
		for (long i = 0; i < rounds; i++)
			await_ring(w);
		break;
	case FEEDER:
		for (long i = 0; i < rounds; i++) {
			pause_for(w, ms * 1000);
			feed();
		}
		break;
	case MAKER:
		for (long i = 0; i < rounds; i++) {
			pause_for(w, ms * 1000);
			pause_for(w, 1000);
			feed();
		}
		break;
	case TICKER:
		for (long i = 0; i < rounds; i++)
			pause_for(w, ms * 1000);
		atomic_store(&over, 1);
		break;
	}
	close(epoll);
}

static void *run(void *given)
{
	const struct thread *of = given;
	struct wait_truth *w = new_wait(of->name);
	struct thread_truth begin;
	int i = 1;

	prctl(PR_SET_NAME, of->name);
	while (atomic_load(&tids[i]))
		i++;
	atomic_store(&tids[i], w->tid);
	await_start();
	begin = thread_now();
	play(of, w);
	thread_done(&begin);
	return NULL;
}

static struct thread threads[MAX_THREADS];
static int number_of_threads;

static void add(const char *name, enum role role, int number, bool numbered)
{
	for (int i = 0; i < number; i++) {
		struct thread *of = &threads[number_of_threads++];

		*of = (struct thread){ .role = role, .index = i, .number = number };
		snprintf(of->name, sizeof(of->name), numbered ? "%s-%d" : "%s", name, i);
	}
}

static void start_threads(void)
{
	for (int i = 0; i < number_of_threads; i++) {
		if (pthread_create(&threads[i].thread, NULL, run, &threads[i]))
			die("pthread_create");
		while (!atomic_load(&tids[i + 1]))
			usleep(1000);
	}
}

/* driver */

static atomic_int *shared_lock;
static atomic_int *shared_over;
static char folder[] = "/tmp/who_waits.XXXXXX";
#define ASK _IO('W', 1)

static void answer(int fuse, const struct fuse_in_header *head, int error, const void *data, size_t size)
{
	struct fuse_out_header out = { (uint32_t)(sizeof(out) + size), error, head->unique };
	char buffer[512];

	memcpy(buffer, &out, sizeof(out));
	if (size)
		memcpy(buffer + sizeof(out), data, size);
	if (write(fuse, buffer, sizeof(out) + size) < 0 && errno != ENOENT)
		die("write to /dev/fuse");
}

static NAMED void hold_request(struct wait_truth *w)
{
	lock(shared_lock, w);
	unlock(shared_lock);
	KEEP_FRAME();
}

static void serve(int fuse)
{
	static char buffer[1 << 17] __attribute__((aligned(8)));
	const struct fuse_in_header *head = (const void *)buffer;
	struct wait_truth *w = new_wait("hold_request");

	prctl(PR_SET_NAME, "server");
	for (;;) {
		struct fuse_attr attr = { .ino = 1, .nlink = 1, .mode = S_IFDIR | 0700, .blksize = 4096 };
		struct fuse_init_out init = { .major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = 4096 };
		struct fuse_attr_out attributes = { .attr = attr };
		struct fuse_entry_out entry = { .nodeid = 2, .attr = attr };
		struct fuse_open_out opened = { .fh = 1, .open_flags = FOPEN_DIRECT_IO };
		struct fuse_ioctl_out result = { 0 };

		if (read(fuse, buffer, sizeof(buffer)) < 0) {
			if (errno == EINTR || errno == ENOENT)
				continue;
			_exit(0); /* it was unmounted */
		}
		entry.attr.ino = 2;
		entry.attr.mode = S_IFREG | 0600;
		if (head->opcode == FUSE_INIT) {
			answer(fuse, head, 0, &init, sizeof(init));
		} else if (head->opcode == FUSE_LOOKUP) {
			answer(fuse, head, 0, &entry, sizeof(entry));
		} else if (head->opcode == FUSE_GETATTR) {
			attributes.attr = head->nodeid == 2 ? entry.attr : attr;
			answer(fuse, head, 0, &attributes, sizeof(attributes));
		} else if (head->opcode == FUSE_OPEN) {
			answer(fuse, head, 0, &opened, sizeof(opened));
		} else if (head->opcode == FUSE_IOCTL) {
			hold_request(w);
			answer(fuse, head, 0, &result, sizeof(result));
		} else if (head->opcode == FUSE_FLUSH || head->opcode == FUSE_RELEASE) {
			answer(fuse, head, 0, NULL, 0);
		} else if (head->opcode != FUSE_FORGET) {
			answer(fuse, head, -ENOSYS, NULL, 0);
		}
	}
}

static NAMED void neighbour_holds(struct wait_truth *w)
{
	lock(shared_lock, w);
	work(ms * 1000);
	unlock(shared_lock);
	KEEP_FRAME();
}

static int start_server(void)
{
	char options[64];
	int fuse, pid;

	if (!mkdtemp(folder) || unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		die("unshare");
	fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse);
	if (fuse < 0 || mount("waits", folder, "fuse", MS_NOSUID | MS_NODEV, options))
		die("/dev/fuse");
	pid = fork();
	if (pid == 0) {
		workload_child();
		serve(fuse);
	}
	close(fuse);
	return pid;
}

static int start_neighbour(void)
{
	int pid = fork();

	if (pid == 0) {
		struct wait_truth *w = new_wait("neighbour_holds"), *pauses = new_wait("pause_for");

		workload_child();
		prctl(PR_SET_NAME, "neighbour");
		await_start();
		while (!atomic_load(shared_over)) {
			neighbour_holds(w);
			pause_for(pauses, 200);
		}
		_exit(0);
	}
	return pid;
}

static int device;
static atomic_int asked, done;

static NAMED void call_driver(void)
{
	if (syscall6(SYS_ioctl, device, ASK, 0, 0, 0, 0) < 0)
		die("ioctl");
	KEEP_FRAME();
}

static NAMED void await_worker(struct wait_truth *w, int round)
{
	int now;

	while ((now = atomic_load(&done)) != round)
		measured(w, SYS_futex, (long)&done, FUTEX_WAIT_PRIVATE, now, 0, 0, 0);
	KEEP_FRAME();
}

static void *worker(void *unused)
{
	struct wait_truth *w = new_wait("worker");
	struct thread_truth begin;

	prctl(PR_SET_NAME, "worker");
	atomic_store(&tids[1], w->tid);
	await_start();
	begin = thread_now();
	for (int i = 1; i <= rounds; i++) {
		while (atomic_load(&asked) != i)
			measured(w, SYS_futex, (long)&asked, FUTEX_WAIT_PRIVATE, i - 1, 0, 0, 0);
		while (!atomic_load(shared_lock)) /* else neighbour may not come to have it */
			sched_yield();
		call_driver();
		atomic_store(&done, i);
		syscall6(SYS_futex, (long)&done, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
	}
	thread_done(&begin);
	return unused;
}

static int drive(void)
{
	struct wait_truth *w = new_wait("await_worker");
	char path[sizeof(folder) + 8];
	int pids[4] = { 0 }, all[5] = { 0 };
	uint64_t begin;
	pthread_t thread;

	shared_lock = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared_lock == MAP_FAILED)
		die("mmap");
	shared_over = shared_lock + 32;
	pids[1] = start_server();
	pids[2] = start_neighbour();
	snprintf(path, sizeof(path), "%s/file", folder);
	device = open(path, O_RDWR);
	if (device < 0 || pids[1] < 0 || pids[2] < 0 || pthread_create(&thread, NULL, worker, NULL))
		die(path);
	while (!atomic_load(&tids[1]))
		usleep(1000);
	pids[0] = all[0] = getpid();
	all[1] = atomic_load(&tids[1]);
	all[2] = pids[1];
	all[3] = pids[2];
	open_gate(pids, all);
	begin = clock_ns(CLOCK_MONOTONIC);
	for (int i = 1; i <= rounds; i++) {
		atomic_store(&asked, i);
		syscall6(SYS_futex, (long)&asked, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
		await_worker(w, i);
	}
	pthread_join(thread, NULL);
	atomic_store(shared_over, 1);
	umount2(folder, MNT_DETACH);
	rmdir(folder);
	waitpid(pids[2], NULL, 0);
	kill(pids[1], SIGKILL);
	return workload_end(begin);
}

int main(int argc, char **argv)
{
	int all[MAX_THREADS + 2];
	const char *kind;
	uint64_t begin;

	workload_begin(argc, argv);
	kind = workload_argc ? workload_argv[0] : "";
	rounds = workload_number(1, 40, 100000);
	ms = workload_number(2, 5, 1000);
	if (pipe(ends))
		die("pipe");
	if (strcmp(kind, "driver") == 0)
		return drive();
	if (strcmp(kind, "gil") == 0) {
		add("runner", RUNNER, 4, true);
	} else if (strcmp(kind, "rwlock") == 0) {
		add("reader", READER, 4, true);
		add("writer", WRITER, 1, false);
	} else if (strcmp(kind, "herd") == 0) {
		add("sleeper", SLEEPER, 8, true);
		add("caller", CALLER, 1, false);
	} else if (strcmp(kind, "cycle") == 0) {
		add("left", PARTNER, 2, false);
		strcpy(threads[1].name, "right");
	} else if (strcmp(kind, "events") == 0 || strcmp(kind, "uring") == 0) {
		if (*kind == 'u' && !make_ring()) {
			fprintf(stderr, "who_waits: io_uring is refused: %s\n", strerror(ring < 0 ? -ring : EINVAL));
			return REFUSED;
		}
		add(*kind == 'u' ? "ring" : "loop", *kind == 'u' ? RING : LOOP, 1, false);
		add("feeder", FEEDER, 1, false);
	} else if (strcmp(kind, "twice") == 0) {
		add("taker", LOOP, 1, false);
		add("maker", MAKER, 1, false);
	} else if (strcmp(kind, "tick") == 0) {
		add("ticker", TICKER, 1, false);
	} else {
		fprintf(stderr, "who_waits: %s is no kind\n", kind);
		return 2;
	}
	start_threads();
	tids[0] = getpid();
	for (int i = 0; i < MAX_THREADS + 2; i++)
		all[i] = atomic_load(&tids[i]);
	open_gate(NULL, all);
	begin = clock_ns(CLOCK_MONOTONIC);
	while (threads[0].role == TICKER && !atomic_load(&over))
		work(1000);
	for (int i = 0; i < number_of_threads; i++)
		pthread_join(threads[i].thread, NULL);
	return workload_end(begin);
}
