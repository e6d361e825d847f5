/* Classes of PyTorch, as far as its process group for Gloo needs them: names, so that the functions have the names that
 * PyTorch's compiler makes of them, and what is passed in memory. */
#ifndef STALLSCOPE_STANDIN_GLOO_H
#define STALLSCOPE_STANDIN_GLOO_H

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#pragma GCC visibility push(default)

namespace at
{
class Tensor
{
};
} // namespace at

namespace c10
{
namespace detail
{
template <class T> struct intrusive_target_default_null_type {
};
} // namespace detail

/* One word that counts who has it, in the object; it has a destructor, so that functions return it in memory. */
template <class T, class Null = detail::intrusive_target_default_null_type<T>> class intrusive_ptr
{
      public:
	intrusive_ptr() : object(nullptr)
	{
	}
	explicit intrusive_ptr(T *object) : object(object)
	{
		keep();
	}
	intrusive_ptr(const intrusive_ptr &other) : object(other.object)
	{
		keep();
	}
	intrusive_ptr &operator=(const intrusive_ptr &other)
	{
		intrusive_ptr(other).swap(*this);
		return *this;
	}
	~intrusive_ptr()
	{
		if (object && object->references.fetch_sub(1) == 1)
			delete object;
	}
	void swap(intrusive_ptr &other)
	{
		std::swap(object, other.object);
	}
	T *operator->() const
	{
		return object;
	}
	T *get() const
	{
		return object;
	}

      private:
	void keep()
	{
		if (object)
			object->references++;
	}
	T *object;
};
} // namespace c10

namespace c10d
{
struct AllreduceOptions {
};
struct AllgatherOptions {
};
struct BarrierOptions {
};

#define MOST_RANKS 16

/* Memory of all ranks: how many operations each one has come to. */
class Store
{
      public:
	std::atomic<uint64_t> references, changes, came[MOST_RANKS];
};

class Work
{
      public:
	virtual ~Work()
	{
	}
	void wait();
	std::atomic<uint64_t> references{ 0 };

      protected:
	void finish();

      private:
	std::mutex lock;
	std::condition_variable changed;
	bool done = false;
};

/* The numbers stand behind the virtual table and the count, as PyTorch's do. */
class Backend
{
      public:
	Backend(int rank, int size) : references(0), rank(rank), size(size)
	{
	}
	virtual ~Backend()
	{
	}
	std::atomic<uint64_t> references;

      protected:
	const int rank, size;
};

class ProcessGroupGloo : public Backend
{
      public:
	class AsyncWork : public Work
	{
	      public:
		uint64_t number = 0;
		void finishWorkGloo();
	};
	class Options
	{
	      public:
		std::atomic<uint64_t> references{ 0 };
	};

	ProcessGroupGloo(const c10::intrusive_ptr<Store> &store, int rank, int size,
			 c10::intrusive_ptr<Options> options);
	~ProcessGroupGloo() override;
	/* Without tensors, it throws. */
	c10::intrusive_ptr<Work> allreduce(std::vector<at::Tensor> &tensors, const AllreduceOptions &options);
	c10::intrusive_ptr<Work> allgather(std::vector<std::vector<at::Tensor>> &outputs,
					   std::vector<at::Tensor> &inputs, const AllgatherOptions &options);
	/* Calls the one before. */
	c10::intrusive_ptr<Work> _allgather_base(at::Tensor &output, at::Tensor &input,
						 const AllgatherOptions &options);
	c10::intrusive_ptr<Work> barrier(const BarrierOptions &options);

      private:
	c10::intrusive_ptr<Work> begin();
	void enqueue(c10::intrusive_ptr<AsyncWork> work);
	void runLoop();

	Store *store;
	std::mutex lock;
	std::condition_variable more;
	std::deque<c10::intrusive_ptr<AsyncWork>> queue;
	uint64_t asked = 0;
	bool ends = false;
	std::thread thread;
};
} // namespace c10d

#pragma GCC visibility pop

#endif
