/* A process with more than 500 libraries, whose threads wait behind chains of them; one library at a time is replaced.
 *
 *	many_mappings [--wait] [--linger] [MILLISECONDS=2000]
 *
 * Truth: 512 libraries are open (many/many_NNN.so; their code is of eight kinds, each with a build id of its own). Threads
 * `chain-0` … `chain-3` wait behind eight of them: next_library → pass_through → inner_K → next_library → … → doze, K being
 * the library's number modulo 8; other libraries each round, so that all have been on a stack after 16 rounds. Thread
 * `reload` opens many/reload_0.so and many/reload_5.so in turn, waits WAITS_EACH times in reload_wait behind pass_through → inner_0 or inner_5,
 * and closes it: the address is the same and the code is not (the `calls` of the wait called `same_address` are how
 * often). In the end all stand still. */
#include <dlfcn.h>
#include <libgen.h>
#include <linux/limits.h>
#include <pthread.h>
#include <sched.h>
#include "workload.h"

#define LIBRARIES 512
#define CHAINS 4
#define WAITS_EACH 200
#define LENGTH 8

typedef long pass_through_t(long (*callback)(void *), void *argument);

struct chain {
	unsigned int at, left;
	struct wait_truth *w;
};

static pass_through_t *libraries[LIBRARIES];
static char folder[PATH_MAX];
static atomic_int tids[CHAINS + 3];

static NAMED long doze(struct wait_truth *w)
{
	long ns = stay_ns();
	struct timespec length = { ns / 1000000000, ns % 1000000000 };
	struct mark mark = wait_begins();

	nanosleep(&length, NULL);
	wait_ends(w, mark);
	return 1;
}

static NAMED long next_library(void *argument)
{
	struct chain *chain = argument;
	long result;

	if (chain->left-- == 0)
		return doze(chain->w);
	result = libraries[chain->at++ % LIBRARIES](next_library, chain);
	KEEP_FRAME();
	return result + 1;
}

static void *chain_main(void *argument)
{
	unsigned int i = (unsigned int)(size_t)argument, round = i * (LIBRARIES / LENGTH / CHAINS);
	struct chain chain;
	struct wait_truth *w;
	char name[32];

	snprintf(name, sizeof(name), "chain-%u", i);
	prctl(PR_SET_NAME, name);
	w = new_wait(name);
	atomic_store(&tids[i], w->tid);
	await_start();
	for (;; round++) {
		chain = (struct chain){ round * LENGTH % LIBRARIES, LENGTH, w };
		next_library(&chain);
	}
	return NULL;
}

static NAMED long reload_wait(void *w)
{
	long result = doze(w);

	KEEP_FRAME();
	return result;
}

static pass_through_t *open_library(const char *name, void **handle)
{
	char path[PATH_MAX + NAME_LEN];
	pass_through_t *function;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	*handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!*handle || !(function = (pass_through_t *)dlsym(*handle, "pass_through"))) {
		fprintf(stderr, "many_mappings: %s\n", dlerror());
		exit(1);
	}
	return function;
}

static void *reload_main(void *unused)
{
	struct wait_truth *w, *same;
	Dl_info info;
	void *base = NULL, *handle;
	pass_through_t *function;

	prctl(PR_SET_NAME, "reload");
	w = new_wait("reload");
	same = new_wait("same_address");
	atomic_store(&tids[CHAINS], w->tid);
	await_start();
	for (int round = 0;; round++) {
		function = open_library(round % 2 ? "reload_5.so" : "reload_0.so", &handle);
		if (dladdr((void *)function, &info) && info.dli_fbase == base)
			same->calls++;
		base = info.dli_fbase;
		for (int i = 0; i < WAITS_EACH; i++)
			function(reload_wait, w);
		dlclose(handle);
	}
	return unused;
}

static void open_libraries(void)
{
	char own[PATH_MAX] = "", name[NAME_LEN];
	void *handle;

	if (readlink("/proc/self/exe", own, sizeof(own) - 1) < 0)
		die("/proc/self/exe");
	snprintf(folder, sizeof(folder), "%.*s/many", PATH_MAX - 16, dirname(own));
	for (int i = 0; i < LIBRARIES; i++) {
		snprintf(name, sizeof(name), "many_%03d.so", i);
		libraries[i] = open_library(name, &handle);
	}
}

int main(int argc, char **argv)
{
	int ready[CHAINS + 3] = { getpid() };
	pthread_t thread;
	uint64_t begin;
	long ms;

	workload_begin(argc, argv);
	ms = workload_number(0, 2000, (LIMIT_SECONDS - 10) * 1000);
	open_libraries();
	for (size_t i = 0; i <= CHAINS; i++)
		if (pthread_create(&thread, NULL, i < CHAINS ? chain_main : reload_main, (void *)i))
			die("pthread_create");
	for (int i = 0; i <= CHAINS; i++)
		while (!(ready[i + 1] = atomic_load(&tids[i])))
			sched_yield();
	open_gate(NULL, ready);
	begin = clock_ns(CLOCK_MONOTONIC);
	usleep((useconds_t)ms * 1000);
	hold_still(ready + 1);
	workload_end(begin);
	_exit(0); /* the others stay where they are */
}
