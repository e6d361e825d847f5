/* See workload.h. */
#include <sys/mman.h>
#include "workload.h"

#define MAX_RECORDS 2048
#define FOREVER_NS 3600000000000

/* Shared by all threads and forked processes of a workload. */
struct board {
	atomic_int started;
	atomic_int waits_used, threads_used;
	struct wait_truth waits[MAX_RECORDS];
	struct thread_truth threads[MAX_RECORDS];
};

static struct board *board;
static bool gate_wait, gate_linger;
static atomic_bool holding;
int workload_argc;
char **workload_argv;

void die(const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(errno));
	exit(1);
}

struct wait_truth *new_wait(const char *function)
{
	int i = atomic_fetch_add(&board->waits_used, 1);
	struct wait_truth *w = &board->waits[i];

	if (i >= MAX_RECORDS) {
		errno = ENOBUFS;
		die("too many waiting functions");
	}
	warm_up(w);
	snprintf(w->function, sizeof(w->function), "%s", function);
	w->pid = getpid();
	w->tid = (int)syscall(SYS_gettid);
	return w;
}

static long long runnable_ns(void)
{
	long long on_cpu, waited = -1;
	FILE *file = fopen("/proc/thread-self/schedstat", "re");

	if (!file)
		return -1;
	if (fscanf(file, "%lld %lld", &on_cpu, &waited) != 2)
		waited = -1;
	fclose(file);
	return waited;
}

/* What is to be exact when other clocks are read before or after. */
static void read_clocks(struct thread_truth *now)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	now->voluntary = usage.ru_nvcsw;
	now->involuntary = usage.ru_nivcsw;
	now->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	now->wall_ns = clock_ns(CLOCK_MONOTONIC);
}

struct thread_truth thread_now(void)
{
	struct thread_truth now = { .pid = getpid(), .tid = (int)syscall(SYS_gettid) };

	now.runnable_ns = runnable_ns();
	read_clocks(&now);
	return now;
}

void thread_done(const struct thread_truth *begin)
{
	struct thread_truth now = *begin;
	int i;

	read_clocks(&now);
	i = atomic_fetch_add(&board->threads_used, 1);
	if (i >= MAX_RECORDS) {
		errno = ENOBUFS;
		die("too many threads");
	}
	now.runnable_ns = runnable_ns();
	prctl(PR_GET_NAME, now.name);
	now.wall_ns -= begin->wall_ns;
	now.cpu_ns -= begin->cpu_ns;
	now.voluntary -= begin->voluntary;
	now.involuntary -= begin->involuntary;
	if (now.runnable_ns >= 0)
		now.runnable_ns -= begin->runnable_ns;
	board->threads[i] = now;
}

static void print_json_string(const char *text)
{
	putchar('"');
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c == '"' || *c == '\\')
			printf("\\%c", *c);
		else if (*c < 0x20)
			printf("\\u%04x", *c);
		else
			putchar(*c);
	}
	putchar('"');
}

void workload_begin(int argc, char **argv)
{
	alarm(LIMIT_SECONDS);
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (board == MAP_FAILED)
		die("mmap");
	for (argc--, argv++; argc > 0 && strncmp(*argv, "--", 2) == 0; argc--, argv++) {
		if (strcmp(*argv, "--wait") == 0)
			gate_wait = true;
		else if (strcmp(*argv, "--linger") == 0)
			gate_linger = true;
		else
			break;
	}
	workload_argc = argc;
	workload_argv = argv;
}

long workload_number(int i, long otherwise, long most)
{
	char *end;
	long value;

	if (i >= workload_argc)
		return otherwise;
	value = strtol(workload_argv[i], &end, 10);
	if (*end || value < 1 || value > most) {
		fprintf(stderr, "%s: %s is not a number from 1 to %ld\n", program_invocation_short_name,
			workload_argv[i], most);
		exit(2);
	}
	return value;
}

void workload_child(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(LIMIT_SECONDS);
}

NAMED void await_start(void)
{
	while (!atomic_load(&board->started))
		syscall6(SYS_futex, (long)&board->started, FUTEX_WAIT, 0, 0, 0, 0);
}

NAMED void open_gate(const int *pids, const int *tids)
{
	int self[] = { getpid(), 0 };
	char byte;

	printf("{\"ready\": true, \"pid\": %d", self[0]);
	printf(", \"pids\": [");
	for (const int *pid = pids ? pids : self; *pid; pid++)
		printf("%s%d", pid == (pids ? pids : self) ? "" : ", ", *pid);
	printf("], \"tids\": [");
	for (const int *tid = tids ? tids : self; *tid; tid++)
		printf("%s%d", tid == (tids ? tids : self) ? "" : ", ", *tid);
	printf("]}\n");
	fflush(stdout);
	if (gate_wait && syscall6(SYS_read, 0, (long)&byte, 1, 0, 0, 0) != 1)
		exit(1); /* whoever should have started us is gone */
	atomic_store(&board->started, 1);
	syscall6(SYS_futex, (long)&board->started, FUTEX_WAKE, MAX_RECORDS, 0, 0, 0);
	KEEP_FRAME();
}

long stay_ns(void)
{
	static atomic_uint round;

	if (atomic_load(&holding))
		return FOREVER_NS;
	return 1000000 + (long)(atomic_fetch_add(&round, 1) % 8) * 250000;
}

/* How often the thread waited so far, -1 if it does not wait now. */
static long waits_for(int tid)
{
	char path[64], line[128], state = 0;
	long switches = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
	file = fopen(path, "re");
	if (!file)
		die(path);
	while (fgets(line, sizeof(line), file)) {
		sscanf(line, "State: %c", &state);
		sscanf(line, "voluntary_ctxt_switches: %ld", &switches);
	}
	fclose(file);
	return state == 'S' || state == 'D' ? switches : -1;
}

void hold_still(const int *tids)
{
	long before;

	atomic_store(&holding, true);
	/* No other wait is so long. */
	for (; *tids; tids++) {
		do {
			before = waits_for(*tids);
			usleep(30000);
		} while (before < 0 || waits_for(*tids) != before);
	}
}

/* Until standard input closes, with --linger. */
static NAMED void linger(void)
{
	char byte;

	while (gate_linger && syscall6(SYS_read, 0, (long)&byte, 1, 0, 0, 0) == 1)
		KEEP_FRAME();
}

static const uint64_t *noted;
static long noted_number;

void workload_times(const uint64_t *times, long number)
{
	noted = times;
	noted_number = number;
}

static void print_times(void)
{
	if (!noted)
		return;
	printf(", \"times\": [");
	for (long i = 0; i < noted_number; i++)
		printf("%s%llu", i ? ", " : "", (unsigned long long)noted[i]);
	printf("]");
}

NAMED int workload_end(uint64_t begin)
{
	const char *comma = "";

	printf("{\"workload\": ");
	print_json_string(program_invocation_short_name);
	printf(", \"pid\": %d, \"begin_ns\": %llu, \"end_ns\": %llu, \"waits\": [", getpid(), (unsigned long long)begin,
	       (unsigned long long)clock_ns(CLOCK_MONOTONIC));
	for (int i = 0; i < board->waits_used; i++) {
		const struct wait_truth *w = &board->waits[i];

		printf("%s{\"function\": ", comma);
		print_json_string(w->function);
		printf(", \"pid\": %d, \"tid\": %d, \"calls\": %ld, \"blocks\": %ld, \"ns\": %llu, \"longest\": %llu}",
		       w->pid, w->tid, w->calls, w->blocks, (unsigned long long)w->ns, (unsigned long long)w->longest);
		comma = ", ";
	}
	printf("], \"threads\": [");
	comma = "";
	for (int i = 0; i < board->threads_used; i++) {
		const struct thread_truth *t = &board->threads[i];

		printf("%s{\"thread\": ", comma);
		print_json_string(t->name);
		printf(", \"pid\": %d, \"tid\": %d, \"wall_ns\": %llu, \"cpu_ns\": %llu, \"runnable_ns\": %lld, ",
		       t->pid, t->tid, (unsigned long long)t->wall_ns, (unsigned long long)t->cpu_ns, t->runnable_ns);
		printf("\"voluntary\": %ld, \"involuntary\": %ld}", t->voluntary, t->involuntary);
		comma = ", ";
	}
	printf("]");
	print_times();
	printf("}\n");
	fflush(stdout);
	linger();
	return 0;
}
