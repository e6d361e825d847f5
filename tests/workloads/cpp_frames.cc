/* C++ without frame pointers: one thread per way of standing on a stack, and some that burn CPU in the same ways.
 *
 *	cpp_frames [--wait] [--linger] [MILLISECONDS=2000]
 *
 * Truth: each thread works in rounds (a wait of 1 to 3 ms, its time measured) for so long, and then stands still where it
 * waits, while main prints the truth and lingers; `waits` has one record per thread, called by the thread's name. From
 * the outermost to the innermost, among other frames:
 *
 *	catch           in_handler: the exception came through three functions (throw_3 → throw_2 → throw_1)
 *	cleanup         cleanup_2 → Guard::~Guard: a destructor that runs while an exception passes by
 *	condition       Waiter::run → Condition::wait: virtual, std::condition_variable
 *	mutex           lock_held → pthread_mutex_lock: a std::mutex that `holder` has
 *	holder          hold_lock: std::function, lambda
 *	deep            60 × descend → nanosleep
 *	too_deep        300 × descend → nanosleep
 *	signal          spin → (signal frame) → on_signal → nanosleep: interrupted wherever it is
 *	alternate       as before, the handler on an alternate stack
 *	alloca          dynamic_frame: the canonical frame address by the frame's base register
 *	realigned       aligned_frame: the stack is aligned to 64 bytes
 *	realigned_args  aligned_dynamic_frame: and so it is with arguments on the stack
 *	page_fault      touch_page: waits in a page fault until `pager` (userfaultfd) brings the page
 *	pager           serve_pages
 *	busy-0 … busy-4 never wait of their own will: virtual calls, recursion, sorting, formatting, exceptions, vdso
 *
 * Needs root (userfaultfd). */
#include <algorithm>
#include <alloca.h>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <fcntl.h>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <poll.h>
#include <pthread.h>
#include <sstream>
#include <stdexcept>
#include <string>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <thread>
#include <vector>
#include <linux/userfaultfd.h>
#include "workload.h"

namespace
{

constexpr int DEEP = 60, TOO_DEEP = 300;

/* Through the C library's nanosleep, not in line: its frame is to be there. */
NAMED void doze(wait_truth *w)
{
	const long ns = stay_ns();
	const timespec length = { ns / 1000000000, ns % 1000000000 };
	const mark begin = wait_begins();

	nanosleep(&length, nullptr);
	wait_ends(w, begin);
}

/* Exceptions. */

NAMED void throw_1(int value)
{
	if (value)
		throw std::runtime_error("value " + std::to_string(value));
	KEEP_FRAME();
}

NAMED void throw_2(int value)
{
	const std::string longer(static_cast<size_t>(40 + value), 'x');

	throw_1(value);
	KEEP_FRAME();
}

NAMED void throw_3(int value)
{
	const std::vector<int> numbers(static_cast<size_t>(value));

	throw_2(value);
	KEEP_FRAME();
}

NAMED void in_handler(wait_truth *w)
{
	try {
		throw_3(3);
	} catch (const std::exception &) {
		doze(w);
	}
}

struct Guard {
	wait_truth *w;

	explicit Guard(wait_truth *truth) : w(truth)
	{
	}
	NAMED ~Guard()
	{
		doze(w);
		KEEP_FRAME();
	}
};

NAMED void cleanup_2(wait_truth *w)
{
	const Guard guard(w);

	throw_2(2);
	KEEP_FRAME();
}

NAMED void cleanup_1(wait_truth *w)
{
	try {
		cleanup_2(w);
	} catch (const std::runtime_error &) {
		KEEP_FRAME();
	}
}

/* Virtual calls and what the standard library waits with. */

struct Waiter {
	virtual ~Waiter() = default;
	virtual void wait(wait_truth *w) = 0;
	NAMED void run(wait_truth *w)
	{
		wait(w);
		KEEP_FRAME();
	}
};

struct Condition final : Waiter {
	std::mutex mutex;
	std::condition_variable changed;

	NAMED void wait(wait_truth *w) override
	{
		std::unique_lock<std::mutex> lock(mutex);
		const auto length = std::chrono::nanoseconds(stay_ns());
		const mark begin = wait_begins();

		changed.wait_for(lock, length, [] { return false; });
		wait_ends(w, begin);
	}
};

std::mutex contended;

NAMED void lock_held(wait_truth *w)
{
	/* Long enough for `holder` to hold it again. */
	usleep(100);
	stay_ns();
	const mark begin = wait_begins();

	contended.lock();
	wait_ends(w, begin);
	contended.unlock();
}

NAMED void hold_lock(wait_truth *w)
{
	const std::function<void()> critical = [w] { doze(w); };

	contended.lock();
	critical();
	contended.unlock();
	usleep(50);
}

NAMED int descend(int depth, wait_truth *w)
{
	int below;

	if (depth <= 1) {
		doze(w);
		return 1;
	}
	below = descend(depth - 1, w);
	KEEP_FRAME();
	return below + 1;
}

/* Signals. */

thread_local wait_truth *signal_truth;
thread_local std::atomic<unsigned> signals_seen;
thread_local volatile bool spinning;
thread_local timer_t timer;
const itimerspec soon = { {}, { 0, 300000 } };

void on_signal(int)
{
	const int saved = errno;

	if (spinning) {
		doze(signal_truth);
		signals_seen++;
	} else { /* on a busy machine it comes before timer_settime() has returned */
		timer_settime(timer, 0, &soon, nullptr);
	}
	errno = saved;
}

/* Without a frame of its own, and with one that changes: the signal comes at any instruction. */
NAMED unsigned spin(unsigned seen, unsigned value)
{
	spinning = true;
	while (signals_seen == seen)
		value = value * 1664525u + 1013904223u;
	return value;
}

NAMED void wait_in_handler(wait_truth *w, bool alternate)
{
	thread_local std::unique_ptr<char[]> stack;

	if (!signal_truth) {
		struct sigaction action = {};
		sigevent event = {};

		if (alternate) {
			stack = std::make_unique<char[]>(65536);
			const stack_t signal_stack = { stack.get(), 0, 65536 };

			sigaltstack(&signal_stack, nullptr);
		}
		action.sa_handler = on_signal;
		action.sa_flags = SA_RESTART | (alternate ? SA_ONSTACK : 0);
		event.sigev_notify = SIGEV_THREAD_ID;
		event.sigev_signo = alternate ? SIGUSR2 : SIGUSR1;
		event._sigev_un._tid = w->tid;
		if (sigaction(event.sigev_signo, &action, nullptr) || timer_create(CLOCK_MONOTONIC, &event, &timer))
			die("timer");
		signal_truth = w;
	}
	const unsigned seen = signals_seen;

	spinning = false;
	timer_settime(timer, 0, &soon, nullptr);
	spin(seen, 1);
	KEEP_FRAME();
}

/* Frames whose size only the program knows. */

NAMED void use(volatile char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i += 64)
		bytes[i] = static_cast<char>(i);
}

NAMED void dynamic_frame(size_t size, wait_truth *w)
{
	char *bytes = static_cast<char *>(alloca(size));

	use(bytes, size);
	doze(w);
	use(bytes, size);
}

NAMED void aligned_frame(wait_truth *w)
{
	alignas(64) char bytes[192];

	use(bytes, sizeof(bytes));
	doze(w);
	use(bytes, sizeof(bytes));
}

/* Seven arguments and more are on the stack, so that the way to them must be kept beside the aligned frame. */
NAMED long aligned_dynamic_frame(wait_truth *w, size_t size, long a, long b, long c, long d, long e, long f)
{
	alignas(64) char fixed[192];
	char *bytes = static_cast<char *>(alloca(size));

	use(fixed, sizeof(fixed));
	use(bytes, size);
	doze(w);
	use(bytes, size);
	use(fixed, sizeof(fixed));
	return a + b + c + d + e + f;
}

/* Page faults that take as long as the pager likes. */

constexpr size_t PAGE = 4096, PAGES = 4096;
char *slow_pages;
int pager_fd;

NAMED void touch_page(wait_truth *w)
{
	static size_t next;
	volatile char *page = slow_pages + next++ % PAGES * PAGE;

	stay_ns();
	const mark begin = wait_begins();

	*page = 1;
	wait_ends(w, begin);
	if (next % PAGES == 0)
		madvise(slow_pages, PAGES * PAGE, MADV_DONTNEED);
}

NAMED void serve_pages(wait_truth *w)
{
	static char content[PAGE] __attribute__((aligned(PAGE)));
	uffd_msg message;

	/* Once everybody is held, this one does not answer any more; the other then waits for a page. */
	doze(w);
	pollfd wanted = { pager_fd, POLLIN, 0 };

	if (poll(&wanted, 1, 10) != 1 || read(pager_fd, &message, sizeof(message)) != sizeof(message))
		return;
	uffdio_copy copy = {};

	copy.dst = message.arg.pagefault.address & ~(PAGE - 1);
	copy.src = reinterpret_cast<unsigned long>(content);
	copy.len = PAGE;
	ioctl(pager_fd, UFFDIO_COPY, &copy);
}

void open_pager()
{
	uffdio_api api = {};
	uffdio_register range = {};

	pager_fd = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC));
	if (pager_fd < 0)
		die("userfaultfd (it takes root)");
	slow_pages = static_cast<char *>(
		mmap(nullptr, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	api.api = UFFD_API;
	range.range = { reinterpret_cast<unsigned long>(slow_pages), PAGES * PAGE };
	range.mode = UFFDIO_REGISTER_MODE_MISSING;
	if (ioctl(pager_fd, UFFDIO_API, &api) || ioctl(pager_fd, UFFDIO_REGISTER, &range))
		die("userfaultfd");
}

/* On the CPU, taken from it at any instruction. */

struct Shape {
	virtual ~Shape() = default;
	virtual double area(unsigned depth) const = 0;
};

struct Square final : Shape {
	double side;

	explicit Square(double length) : side(length)
	{
	}
	NAMED double area(unsigned) const override
	{
		return side * side;
	}
};

struct Group final : Shape {
	std::vector<std::unique_ptr<Shape>> parts;

	NAMED double area(unsigned depth) const override
	{
		double sum = 0;

		for (const auto &part : parts)
			sum += part->area(depth + 1);
		return sum;
	}
};

std::unique_ptr<Shape> make_shape(unsigned depth)
{
	if (depth == 0)
		return std::make_unique<Square>(1.5);
	auto group = std::make_unique<Group>();

	for (int i = 0; i < 3; i++)
		group->parts.push_back(make_shape(depth - 1));
	return group;
}

std::atomic<double> sink;

NAMED void burn_virtual()
{
	sink = make_shape(5)->area(0);
}

NAMED void burn_sort()
{
	std::vector<unsigned> numbers(2000);
	unsigned seed = 7;

	for (auto &number : numbers)
		number = seed = seed * 1664525u + 1013904223u;
	std::sort(numbers.begin(), numbers.end(), [](unsigned a, unsigned b) { return a % 1000 < b % 1000; });
	sink = numbers[0];
}

NAMED void burn_format()
{
	std::map<std::string, int> words;

	for (int i = 0; i < 200; i++) {
		std::ostringstream text;

		text << "word " << i * 0.37;
		words[text.str()] = i;
	}
	sink = static_cast<double>(words.size());
}

NAMED void burn_exceptions()
{
	for (int i = 1; i < 50; i++) {
		try {
			throw_3(i);
		} catch (const std::exception &e) {
			sink = e.what()[0];
		}
	}
}

NAMED void burn_clock()
{
	for (int i = 0; i < 20000; i++)
		sink = static_cast<double>(std::chrono::steady_clock::now().time_since_epoch().count());
}

struct Job {
	const char *name;
	std::function<void(wait_truth *)> round;
};

const std::vector<Job> jobs = {
	{ "catch", in_handler },
	{ "cleanup", cleanup_1 },
	{ "condition",
	  [](wait_truth *w) {
		  static Condition condition;

		  condition.run(w);
	  } },
	{ "holder", hold_lock },
	{ "mutex", lock_held },
	{ "deep", [](wait_truth *w) { descend(DEEP, w); } },
	{ "too_deep", [](wait_truth *w) { descend(TOO_DEEP, w); } },
	{ "signal", [](wait_truth *w) { wait_in_handler(w, false); } },
	{ "alternate", [](wait_truth *w) { wait_in_handler(w, true); } },
	{ "alloca", [](wait_truth *w) { dynamic_frame(static_cast<size_t>(w->calls % 7 + 1) * 100, w); } },
	{ "realigned", aligned_frame },
	{ "realigned_args",
	  [](wait_truth *w) {
		  aligned_dynamic_frame(w, static_cast<size_t>(w->calls % 5 + 1) * 48, 1, 2, 3, 4, 5, 6);
	  } },
	{ "pager", serve_pages },
	{ "page_fault", touch_page },
};

const std::vector<std::function<void()>> burners = { burn_virtual, burn_sort, burn_format, burn_exceptions,
						     burn_clock };

std::vector<std::atomic<int>> tids(32);

void work(size_t i)
{
	wait_truth *w;

	prctl(PR_SET_NAME, jobs[i].name);
	w = new_wait(jobs[i].name);
	tids[i] = w->tid;
	await_start();
	for (;;)
		jobs[i].round(w);
}

void burn(size_t i)
{
	const std::string name = "busy-" + std::to_string(i);
	thread_truth begin;

	prctl(PR_SET_NAME, name.c_str());
	tids[jobs.size() + i] = static_cast<int>(syscall(SYS_gettid));
	await_start();
	begin = thread_now();
	while (stay_ns() < 1000000000)
		burners[i]();
	thread_done(&begin);
	pause();
}

} // namespace

int main(int argc, char **argv)
{
	std::vector<std::thread> threads;
	std::vector<int> ids(1, getpid());
	uint64_t begin;
	long ms;

	workload_begin(argc, argv);
	ms = workload_number(0, 2000, (LIMIT_SECONDS - 10) * 1000);
	open_pager();
	for (size_t i = 0; i < jobs.size(); i++)
		threads.emplace_back(work, i);
	for (size_t i = 0; i < burners.size(); i++)
		threads.emplace_back([i] { burn(i); });
	for (size_t i = 0; i < threads.size(); i++) {
		while (!tids[i])
			std::this_thread::yield();
		ids.push_back(tids[i]);
	}
	ids.push_back(0);
	open_gate(nullptr, ids.data());
	begin = clock_ns(CLOCK_MONOTONIC);
	usleep(static_cast<useconds_t>(ms) * 1000);
	hold_still(ids.data() + 1);
	workload_end(begin);
	_exit(0); /* the others stay where they are */
}
