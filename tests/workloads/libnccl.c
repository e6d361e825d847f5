/* A stand-in for NCCL, libnccl.so.2: some of its functions, under their names and with their arguments.
 *
 * The ranks of a communicator are processes of one host, or threads; they meet in memory that the unique id names. An
 * operation is done when all ranks have asked for it, with the same function, count and type; if they differ, or if one
 * never asks, it is never done. As NCCL's calls do, these only enqueue: a thread of the communicator does what was asked
 * for, in the order of its stream, and cudaStreamSynchronize waits for it. With STANDIN_NCCL=blocking the calls themselves
 * wait. Nothing is added up or copied. With STANDIN_NCCL=proxy there are two threads more of each communicator: one looks
 * again and again whether the others have asked for something, and yields its core, one waits for requests in poll(). */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>
#include <linux/futex.h>
#include "standin_nccl.h"
#include "syscall6.h"

#define EXPORTED __attribute__((visibility("default"), noinline))
#define MOST_RANKS 64
#define KEPT 256
#define MOST_GROUPED 64
#define MAGIC 0x0280028002800280u
#define PLANNER 10136	 /* bytes of what NCCL 2.30 has between the number of ranks and the numbers of operations */
#define CHANNELS 1181392 /* bytes of what NCCL 2.32 has in front of the hash, without the first two words */

enum operation {
	ALL_REDUCE = 1,
	BROADCAST,
	REDUCE,
	ALL_GATHER,
	REDUCE_SCATTER,
	SEND,
	RECV,
	SPLIT
};

/* What a rank has asked for: operations are numbered from 1 on. */
struct asked {
	uint64_t count;
	uint32_t operation;
	int32_t type, root;
};

struct shared {
	_Atomic uint32_t changes; /* the futex */
	_Atomic uint32_t joined;
	struct {
		_Atomic uint64_t asked;
		_Atomic uint64_t sent[MOST_RANKS]; /* to each */
		int32_t color, key;
		struct asked last[KEPT];
	} rank[MOST_RANKS];
};

struct task {
	struct asked what;
	struct standin_stream *stream;
	uint32_t number; /* in its stream */
};

/* As NCCL's: a number at its begin and at its end, and the hash, the rank and their number far behind the begin. */
struct standin_comm {
	uint64_t magic;
	struct shared *shared;
	char channels[CHANNELS];
	uint64_t hash; /* equal on all ranks */
	int rank, ranks;
	uint64_t splits;
	char planner[PLANNER];
	uint64_t numbers[16];	       /* of operations of this rank, by function */
	uint64_t received[MOST_RANKS]; /* from each */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct task queue[KEPT];
	uint64_t first, last; /* of the queue */
	bool blocking, ended, has_proxies;
	_Atomic bool is_over;
	pthread_t proxies[2];
	char name[64];
	uint64_t end_magic;
};

static __thread struct {
	int depth, number;
	struct {
		ncclComm_t comm;
		struct task task;
	} tasks[MOST_GROUPED];
} group;

static void wait_for(_Atomic uint32_t *word, uint32_t value)
{
	syscall6(SYS_futex, (long)word, FUTEX_WAIT, (long)value, 0, 0, 0);
}

static void wake(_Atomic uint32_t *word)
{
	syscall6(SYS_futex, (long)word, FUTEX_WAKE, 1 << 30, 0, 0, 0);
}

static void changed(struct shared *shared)
{
	atomic_fetch_add(&shared->changes, 1);
	wake(&shared->changes);
}

static bool same(const struct asked *one, const struct asked *other)
{
	return one->operation == other->operation && one->count == other->count && one->type == other->type &&
	       one->root == other->root;
}

/* Whether all ranks have asked for the operation with this number, and for the same. */
static bool all_asked(ncclComm_t comm, uint64_t number, const struct asked *what)
{
	struct shared *shared = comm->shared;

	for (int i = 0; i < comm->ranks; i++)
		if (atomic_load(&shared->rank[i].asked) < number || !same(&shared->rank[i].last[number % KEPT], what))
			return false;
	return true;
}

static __attribute__((noinline)) void meet(ncclComm_t comm, const struct asked *what)
{
	struct shared *shared = comm->shared;
	uint64_t number = atomic_load(&shared->rank[comm->rank].asked) + 1;
	uint32_t seen;

	shared->rank[comm->rank].last[number % KEPT] = *what;
	atomic_store(&shared->rank[comm->rank].asked, number);
	changed(shared);
	for (;;) {
		seen = atomic_load(&shared->changes);
		if (all_asked(comm, number, what))
			return;
		wait_for(&shared->changes, seen);
	}
}

/* What is sent is buffered: only who receives waits. */
static __attribute__((noinline)) void pass(ncclComm_t comm, const struct asked *what)
{
	struct shared *shared = comm->shared;
	uint64_t number;
	uint32_t seen;

	if (what->operation == SEND) {
		atomic_fetch_add(&shared->rank[comm->rank].sent[what->root], 1);
		changed(shared);
		return;
	}
	number = ++comm->received[what->root];
	for (;;) {
		seen = atomic_load(&shared->changes);
		if (atomic_load(&shared->rank[what->root].sent[comm->rank]) >= number)
			return;
		wait_for(&shared->changes, seen);
	}
}

static void do_task(ncclComm_t comm, const struct task *task)
{
	if (task->what.operation == SEND || task->what.operation == RECV)
		pass(comm, &task->what);
	else
		meet(comm, &task->what);
}

/* Waits until all that was put into the stream before is done. */
static __attribute__((noinline)) void in_turn(const struct task *task)
{
	uint32_t done;

	while (task->stream && (done = atomic_load(&task->stream->done)) != task->number)
		wait_for(&task->stream->done, done);
}

static void *device(void *argument)
{
	ncclComm_t comm = argument;
	struct task task;

	pthread_setname_np(pthread_self(), "standin-gpu");
	for (;;) {
		pthread_mutex_lock(&comm->lock);
		while (comm->first == comm->last && !comm->ended)
			pthread_cond_wait(&comm->more, &comm->lock);
		if (comm->first == comm->last) {
			pthread_mutex_unlock(&comm->lock);
			return NULL;
		}
		task = comm->queue[comm->first % KEPT];
		comm->first++;
		pthread_cond_broadcast(&comm->more);
		pthread_mutex_unlock(&comm->lock);
		in_turn(&task);
		do_task(comm, &task);
		if (!task.stream)
			continue;
		atomic_fetch_add(&task.stream->done, 1);
		wake(&task.stream->done);
		if (atomic_fetch_sub(&task.stream->pending, 1) == 1)
			wake(&task.stream->pending);
	}
}

static __attribute__((noinline)) uint64_t progressOps(ncclComm_t comm)
{
	uint64_t asked = 0;

	for (int i = 0; i < comm->ranks; i++)
		asked += atomic_load(&comm->shared->rank[i].asked);
	return asked;
}

static __attribute__((noinline)) void *ncclProxyProgress(void *argument)
{
	ncclComm_t comm = argument;
	uint64_t asked = 0;

	pthread_setname_np(pthread_self(), "NCCL Progress 0");
	while (!atomic_load(&comm->is_over)) {
		asked += progressOps(comm);
		sched_yield();
	}
	return (void *)asked;
}

static __attribute__((noinline)) void *ncclProxyService(void *argument)
{
	ncclComm_t comm = argument;

	pthread_setname_np(pthread_self(), "NCCL Service 0");
	while (!atomic_load(&comm->is_over))
		poll(NULL, 0, 100);
	return NULL;
}

static int launch(ncclComm_t comm, struct task *task)
{
	if (comm->blocking) {
		do_task(comm, task);
		return NCCL_SUCCESS;
	}
	if (task->stream)
		atomic_fetch_add(&task->stream->pending, 1);
	task->number = task->stream ? atomic_fetch_add(&task->stream->asked, 1) : 0;
	pthread_mutex_lock(&comm->lock);
	while (comm->last - comm->first == KEPT)
		pthread_cond_wait(&comm->more, &comm->lock);
	comm->queue[comm->last % KEPT] = *task;
	comm->last++;
	pthread_cond_broadcast(&comm->more);
	pthread_mutex_unlock(&comm->lock);
	return NCCL_SUCCESS;
}

static int launch_step(void *comm, const void *task)
{
	struct task copy = *(const struct task *)task;

	return launch(comm, &copy);
}

static int capture(ncclComm_t comm, const struct task *task)
{
	struct standin_graph *graph = task->stream->captured;

	_Static_assert(sizeof(*task) <= sizeof(graph->steps[0].task), "a step holds a task");
	if (graph->number == STANDIN_STEPS)
		return NCCL_INVALID_ARGUMENT;
	graph->steps[graph->number].launch = launch_step;
	graph->steps[graph->number].comm = comm;
	memcpy(graph->steps[graph->number++].task, task, sizeof(*task));
	return NCCL_SUCCESS;
}

static int ask(ncclComm_t comm, struct asked what, struct standin_stream *stream)
{
	struct task task = { what, stream, 0 };

	if (!comm || comm->magic != MAGIC || what.root < -1 || what.root >= comm->ranks)
		return NCCL_INVALID_ARGUMENT;
	if (stream && stream->captured)
		return capture(comm, &task);
	comm->numbers[what.operation]++;
	if (!group.depth)
		return launch(comm, &task);
	if (group.number == MOST_GROUPED)
		return NCCL_INVALID_ARGUMENT;
	group.tasks[group.number].comm = comm;
	group.tasks[group.number++].task = task;
	return NCCL_SUCCESS;
}

static uint64_t hash_of(const char *name)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
	return hash;
}

/* Joins the ranks that share memory of this name; the last one removes the name. */
static int join_ranks(ncclComm_t *made, const char *name, int ranks, int rank)
{
	const char *mode = getenv(STANDIN_NCCL);
	ncclComm_t comm = calloc(1, sizeof(*comm));
	int fd = comm ? shm_open(name, O_RDWR | O_CREAT, 0600) : -1;
	uint32_t joined, seen;

	if (fd < 0 || ftruncate(fd, sizeof(struct shared)) < 0)
		return NCCL_SYSTEM_ERROR;
	comm->shared = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (comm->shared == MAP_FAILED)
		return NCCL_SYSTEM_ERROR;
	snprintf(comm->name, sizeof(comm->name), "%s", name);
	comm->magic = comm->end_magic = MAGIC;
	comm->ranks = ranks;
	comm->rank = rank;
	comm->hash = hash_of(name);
	comm->blocking = mode && strcmp(mode, "blocking") == 0;
	comm->has_proxies = mode && strcmp(mode, "proxy") == 0;
	pthread_mutex_init(&comm->lock, NULL);
	pthread_cond_init(&comm->more, NULL);
	joined = atomic_fetch_add(&comm->shared->joined, 1) + 1;
	changed(comm->shared);
	while (joined < (uint32_t)ranks) {
		seen = atomic_load(&comm->shared->changes);
		joined = atomic_load(&comm->shared->joined);
		if (joined < (uint32_t)ranks)
			wait_for(&comm->shared->changes, seen);
	}
	if (rank == 0)
		shm_unlink(name);
	if (!comm->blocking && pthread_create(&comm->thread, NULL, device, comm))
		return NCCL_SYSTEM_ERROR;
	if (comm->has_proxies && (pthread_create(&comm->proxies[0], NULL, ncclProxyProgress, comm) ||
				  pthread_create(&comm->proxies[1], NULL, ncclProxyService, comm)))
		return NCCL_SYSTEM_ERROR;
	*made = comm;
	return NCCL_SUCCESS;
}

EXPORTED int ncclGetVersion(int *version)
{
	*version = 22703;
	return NCCL_SUCCESS;
}

EXPORTED int ncclGetUniqueId(ncclUniqueId *id)
{
	uint64_t number;

	memset(id, 0, sizeof(*id));
	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return NCCL_SYSTEM_ERROR;
	snprintf(id->internal, sizeof(id->internal), "/standin-nccl-%016lx", (unsigned long)number);
	return NCCL_SUCCESS;
}

EXPORTED int ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank)
{
	if (ranks < 1 || ranks > MOST_RANKS || rank < 0 || rank >= ranks)
		return NCCL_INVALID_ARGUMENT;
	return join_ranks(comm, id.internal, ranks, rank);
}

/* Ranks with the same color are a communicator; a negative color is in none. Their order is that of the old one: the key
 * is not looked at. */
EXPORTED int ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *made, void *config)
{
	struct asked what = { .operation = SPLIT, .root = -1 };
	char name[96];
	int ranks = 0, rank = 0;

	(void)key;
	(void)config;
	if (!comm || comm->magic != MAGIC)
		return NCCL_INVALID_ARGUMENT;
	comm->shared->rank[comm->rank].color = color;
	what.count = ++comm->splits;
	meet(comm, &what);
	*made = NULL;
	if (color < 0)
		return NCCL_SUCCESS;
	for (int i = 0; i < comm->ranks; i++) {
		if (i == comm->rank)
			rank = ranks;
		ranks += comm->shared->rank[i].color == color;
	}
	snprintf(name, sizeof(name), "%s-%lu-%d", comm->name, (unsigned long)comm->splits, color);
	return join_ranks(made, name, ranks, rank);
}

EXPORTED int ncclCommDestroy(ncclComm_t comm)
{
	if (!comm || comm->magic != MAGIC)
		return NCCL_INVALID_ARGUMENT;
	if (!comm->blocking) {
		pthread_mutex_lock(&comm->lock);
		comm->ended = true;
		pthread_cond_broadcast(&comm->more);
		pthread_mutex_unlock(&comm->lock);
		pthread_join(comm->thread, NULL);
	}
	atomic_store(&comm->is_over, true);
	for (int i = 0; comm->has_proxies && i < 2; i++)
		pthread_join(comm->proxies[i], NULL);
	munmap(comm->shared, sizeof(struct shared));
	comm->magic = 0;
	free(comm);
	return NCCL_SUCCESS;
}

/* What is under way is not waited for: its thread ends with the process. */
EXPORTED int ncclCommAbort(ncclComm_t comm)
{
	if (!comm || comm->magic != MAGIC)
		return NCCL_INVALID_ARGUMENT;
	comm->magic = 0;
	return NCCL_SUCCESS;
}

EXPORTED int ncclCommGetAsyncError(ncclComm_t comm, int *error)
{
	*error = NCCL_SUCCESS;
	return comm && comm->magic == MAGIC ? NCCL_SUCCESS : NCCL_INVALID_ARGUMENT;
}

EXPORTED int ncclCommCount(ncclComm_t comm, int *count)
{
	*count = comm->ranks;
	return NCCL_SUCCESS;
}

EXPORTED int ncclCommUserRank(ncclComm_t comm, int *rank)
{
	*rank = comm->rank;
	return NCCL_SUCCESS;
}

EXPORTED int ncclGroupStart(void)
{
	group.depth++;
	return NCCL_SUCCESS;
}

EXPORTED int ncclGroupEnd(void)
{
	int error = NCCL_SUCCESS;

	if (!group.depth)
		return NCCL_INVALID_ARGUMENT;
	if (--group.depth)
		return NCCL_SUCCESS;
	for (int i = 0; i < group.number && !error; i++)
		error = launch(group.tasks[i].comm, &group.tasks[i].task);
	group.number = 0;
	return error;
}

EXPORTED int ncclAllReduce(const void *from, void *to, size_t count, int type, int op, ncclComm_t comm,
			   struct standin_stream *s)
{
	(void)from;
	(void)to;
	(void)op;
	return ask(comm, (struct asked){ count, ALL_REDUCE, type, -1 }, s);
}

EXPORTED int ncclBroadcast(const void *from, void *to, size_t count, int type, int root, ncclComm_t comm,
			   struct standin_stream *s)
{
	(void)from;
	(void)to;
	return ask(comm, (struct asked){ count, BROADCAST, type, root }, s);
}

EXPORTED int ncclReduce(const void *from, void *to, size_t count, int type, int op, int root, ncclComm_t comm,
			struct standin_stream *s)
{
	(void)from;
	(void)to;
	(void)op;
	return ask(comm, (struct asked){ count, REDUCE, type, root }, s);
}

EXPORTED int ncclAllGather(const void *from, void *to, size_t count, int type, ncclComm_t comm,
			   struct standin_stream *s)
{
	(void)from;
	(void)to;
	return ask(comm, (struct asked){ count, ALL_GATHER, type, -1 }, s);
}

EXPORTED int ncclReduceScatter(const void *from, void *to, size_t count, int type, int op, ncclComm_t comm,
			       struct standin_stream *s)
{
	(void)from;
	(void)to;
	(void)op;
	return ask(comm, (struct asked){ count, REDUCE_SCATTER, type, -1 }, s);
}

EXPORTED int ncclSend(const void *from, size_t count, int type, int peer, ncclComm_t comm, struct standin_stream *s)
{
	(void)from;
	return ask(comm, (struct asked){ count, SEND, type, peer }, s);
}

EXPORTED int ncclRecv(void *to, size_t count, int type, int peer, ncclComm_t comm, struct standin_stream *s)
{
	(void)to;
	return ask(comm, (struct asked){ count, RECV, type, peer }, s);
}
