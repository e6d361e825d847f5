/* A stand-in for PyTorch's libtorch_cpu.so: some functions of c10d::ProcessGroupGloo, under their names and with their
 * arguments.
 *
 * The ranks are processes of one host that meet in memory that they share. As PyTorch's do, the functions hand an object
 * over to a thread of the group, which is done when all ranks have come to it: then it calls finishWorkGloo() of the
 * object. Objects are freed, and their memory is used again. Nothing is added up or copied. */
#include <stdexcept>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "standin_gloo.h"

#define NOT_INLINE __attribute__((noinline))

namespace c10d
{
void Work::wait()
{
	std::unique_lock<std::mutex> held(lock);

	while (!done)
		changed.wait(held);
}

void Work::finish()
{
	std::unique_lock<std::mutex> held(lock);

	done = true;
	changed.notify_all();
}

NOT_INLINE void ProcessGroupGloo::AsyncWork::finishWorkGloo()
{
	finish();
}

ProcessGroupGloo::ProcessGroupGloo(const c10::intrusive_ptr<Store> &store, int rank, int size,
				   c10::intrusive_ptr<Options>)
    : Backend(rank, size), store(store.get()), thread(&ProcessGroupGloo::runLoop, this)
{
}

ProcessGroupGloo::~ProcessGroupGloo()
{
	{
		std::unique_lock<std::mutex> held(lock);
		ends = true;
		more.notify_all();
	}
	thread.join();
}

void ProcessGroupGloo::runLoop()
{
	for (;;) {
		c10::intrusive_ptr<AsyncWork> work;
		{
			std::unique_lock<std::mutex> held(lock);
			while (queue.empty() && !ends)
				more.wait(held);
			if (queue.empty())
				return;
			work = queue.front();
			queue.pop_front();
		}
		store->came[rank] = work->number;
		store->changes++;
		syscall(SYS_futex, &store->changes, FUTEX_WAKE, MOST_RANKS, nullptr, nullptr, 0);
		for (int other = 0; other < size;) {
			uint32_t seen = static_cast<uint32_t>(store->changes);

			if (store->came[other] >= work->number)
				other++;
			else
				syscall(SYS_futex, &store->changes, FUTEX_WAIT, seen, nullptr, nullptr, 0);
		}
		work->finishWorkGloo();
	}
}

NOT_INLINE void ProcessGroupGloo::enqueue(c10::intrusive_ptr<AsyncWork> work)
{
	std::unique_lock<std::mutex> held(lock);

	work->number = ++asked;
	queue.push_back(work);
	more.notify_one();
}

c10::intrusive_ptr<Work> ProcessGroupGloo::begin()
{
	c10::intrusive_ptr<AsyncWork> work(new AsyncWork);

	enqueue(work);
	return c10::intrusive_ptr<Work>(work.get());
}

NOT_INLINE c10::intrusive_ptr<Work> ProcessGroupGloo::allreduce(std::vector<at::Tensor> &tensors,
								const AllreduceOptions &)
{
	if (tensors.empty())
		throw std::invalid_argument("ProcessGroupGloo::allreduce: requires tensors");
	return begin();
}

NOT_INLINE c10::intrusive_ptr<Work> ProcessGroupGloo::allgather(std::vector<std::vector<at::Tensor>> &,
								std::vector<at::Tensor> &, const AllgatherOptions &)
{
	return begin();
}

NOT_INLINE c10::intrusive_ptr<Work> ProcessGroupGloo::_allgather_base(at::Tensor &, at::Tensor &input,
								      const AllgatherOptions &options)
{
	std::vector<std::vector<at::Tensor>> outputs;
	std::vector<at::Tensor> inputs(1, input);

	return allgather(outputs, inputs, options);
}

NOT_INLINE c10::intrusive_ptr<Work> ProcessGroupGloo::barrier(const BarrierOptions &)
{
	return begin();
}
} // namespace c10d
