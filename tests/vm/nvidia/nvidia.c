// SPDX-License-Identifier: GPL-2.0-only
/* A stand-in for NVIDIA's kernel driver: its devices, its ioctl calls of the resource manager (RM), its call path and
 * its locks, without a GPU. It computes nothing: what a call costs is the locks that it takes, and the time in which
 * it waits for the GPU's firmware (GSP), which is a parameter. Names are those of the driver's open source
 * (NVIDIA/open-gpu-kernel-modules); the code is not.
 *
 *	nvidia_unlocked_ioctl → nvidia_ioctl → rm_ioctl → os_acquire_rwlock_write → down_write
 *
 * The API's lock is one read-write semaphore for all processes and GPUs, each GPU has a semaphore. Controls of the table
 * below take them as the driver's do by their flags; every other call takes the API's lock for write, and those of all
 * GPUs. The RM's own error is in the argument's `status`, while ioctl(2) returns 0.
 *
 * Parameters, in /sys/module/nvidia/parameters: hold_us, how long the firmware takes to answer; spin, whether the driver
 * polls meanwhile (as the real one does) or sleeps. What can only be read are its own measurements: calls, and ns of
 * threads in which they waited for the API's lock (api_write_ns, api_read_ns) or a GPU's (gpu_ns), and for the firmware
 * (gsp_ns). */
#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/rwsem.h>
#include <linux/semaphore.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "rm_ioctls.h"

/* Each is a frame, with its own name. */
#define NAMED noinline __noclone

#define GPUS 2
#define OBJECTS 16 /* of an open file */
#define LARGEST_ARGUMENT 64

#define NV01_ROOT 0x0
#define NV01_DEVICE_0 0x80
#define NV20_SUBDEVICE_0 0x2080

#define NV_OK 0x0
#define NV_ERR_INSUFFICIENT_RESOURCES 0x1a
#define NV_ERR_INVALID_CLASS 0x22
#define NV_ERR_INVALID_OBJECT_HANDLE 0x33
#define NV_ERR_INVALID_PARAM_STRUCT 0x3a
#define NV_ERR_NOT_SUPPORTED 0x56

enum gpus {
	NO_GPU,
	ONE_GPU,
	ALL_GPUS
};

/* What a control locks: by its flags in the driver's g_*_nvoc.c. */
static const struct rm_control {
	u32 command;
	bool writes;
	enum gpus gpus;
	bool gsp;
	u32 status;
} rm_controls[] = {
	{ 0x00000201, false, NO_GPU, false, NV_OK },		    /* GPU_GET_ATTACHED_IDS */
	{ 0x00000205, false, NO_GPU, false, NV_OK },		    /* GPU_GET_ID_INFO_V2 */
	{ 0x00801110, true, ALL_GPUS, false, NV_OK },		    /* GR_GET_INFO_V2, of a device */
	{ 0x20800102, false, ONE_GPU, false, NV_OK },		    /* GPU_GET_INFO_V2 */
	{ 0x20800110, false, ALL_GPUS, false, NV_OK },		    /* GPU_GET_NAME_STRING */
	{ 0x2080012f, false, ONE_GPU, true, NV_ERR_NOT_SUPPORTED }, /* GPU_QUERY_ECC_STATUS: it has none */
	{ 0x2080014a, false, ONE_GPU, false, NV_OK },		    /* GPU_GET_GID_INFO */
	{ 0x20801303, false, ONE_GPU, false, NV_OK },		    /* FB_GET_INFO_V2 */
	{ 0x20801701, false, NO_GPU, false, NV_OK },		    /* MC_GET_ARCH_INFO */
	{ 0x2080200b, true, ALL_GPUS, true, NV_OK },		    /* PERF_GET_LEVEL_INFO_V2 */
};

static const struct rm_control other_control = { 0, true, ALL_GPUS, false, NV_ERR_NOT_SUPPORTED };

struct rm_object {
	u32 handle, class, gpu;
};

/* An open file; the API's lock guards it. */
struct nv_file {
	unsigned int count;
	struct rm_object objects[OBJECTS];
};

static unsigned int hold_us = 2000;
module_param(hold_us, uint, 0644);
static bool spin;
module_param(spin, bool, 0644);

static int get_counter(char *buffer, const struct kernel_param *parameter)
{
	return scnprintf(buffer, PAGE_SIZE, "%lld\n", (long long)atomic64_read(parameter->arg));
}

static const struct kernel_param_ops counter = { .get = get_counter };

#define COUNTER(name)                                                                                                  \
	static atomic64_t name = ATOMIC64_INIT(0);                                                                     \
	module_param_cb(name, &counter, &name, 0444)

COUNTER(calls);
COUNTER(api_write_ns);
COUNTER(api_read_ns);
COUNTER(gpu_ns);
COUNTER(gsp_ns);

static struct rw_semaphore *api_lock;
static struct semaphore *gpu_locks[GPUS];

static void add_since(atomic64_t *sum, ktime_t begin)
{
	atomic64_add(ktime_to_ns(ktime_sub(ktime_get(), begin)), sum);
}

static NAMED void os_acquire_rwlock_write(struct rw_semaphore *lock)
{
	ktime_t begin = ktime_get();

	down_write(lock);
	add_since(&api_write_ns, begin);
}

static NAMED void os_acquire_rwlock_read(struct rw_semaphore *lock)
{
	ktime_t begin = ktime_get();

	down_read(lock);
	add_since(&api_read_ns, begin);
}

static NAMED void os_release_rwlock_write(struct rw_semaphore *lock)
{
	up_write(lock);
}

static NAMED void os_release_rwlock_read(struct rw_semaphore *lock)
{
	up_read(lock);
}

static NAMED void os_acquire_semaphore(struct semaphore *lock)
{
	ktime_t begin = ktime_get();

	down(lock);
	add_since(&gpu_ns, begin);
}

static NAMED void os_release_semaphore(struct semaphore *lock)
{
	up(lock);
}

/* A message to the firmware, and its answer. */
static NAMED void _kgspRpcRecvPoll(void)
{
	unsigned int us = hold_us;
	ktime_t begin = ktime_get();

	if (spin) {
		while (ktime_us_delta(ktime_get(), begin) < us)
			cpu_relax();
	} else {
		usleep_range(us, us);
	}
	add_since(&gsp_ns, begin);
}

static void lock_gpus(enum gpus gpus, u32 gpu)
{
	if (gpus == ONE_GPU)
		os_acquire_semaphore(gpu_locks[gpu]);
	for (int i = 0; gpus == ALL_GPUS && i < GPUS; i++)
		os_acquire_semaphore(gpu_locks[i]);
}

static void unlock_gpus(enum gpus gpus, u32 gpu)
{
	if (gpus == ONE_GPU)
		os_release_semaphore(gpu_locks[gpu]);
	for (int i = GPUS - 1; gpus == ALL_GPUS && i >= 0; i--)
		os_release_semaphore(gpu_locks[i]);
}

static struct rm_object *find_object(struct nv_file *file, u32 handle)
{
	for (unsigned int i = 0; i < file->count; i++)
		if (file->objects[i].handle == handle)
			return &file->objects[i];
	return NULL;
}

static const struct rm_control *find_control(u32 command)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(rm_controls); i++)
		if (rm_controls[i].command == command)
			return &rm_controls[i];
	return &other_control;
}

/* With the API's lock. */
static u32 run_control(struct nv_file *file, const struct rm_control *control, const struct control *argument)
{
	const struct rm_object *object = find_object(file, argument->object);

	if (!object || object->class != argument->command >> 16)
		return NV_ERR_INVALID_OBJECT_HANDLE;
	lock_gpus(control->gpus, object->gpu);
	if (control->gsp)
		_kgspRpcRecvPoll();
	unlock_gpus(control->gpus, object->gpu);
	return control->status;
}

/* With the API's lock, for write. A device's parameters begin with its number. */
static u32 add_object(struct nv_file *file, const struct short_alloc *argument)
{
	struct rm_object *parent = find_object(file, argument->parent);
	u32 gpu = parent ? parent->gpu : 0;

	if (argument->class != NV01_ROOT && argument->class != NV01_DEVICE_0 && argument->class != NV20_SUBDEVICE_0)
		return NV_ERR_INVALID_CLASS;
	if (find_object(file, argument->object) || (argument->class != NV01_ROOT && !parent))
		return NV_ERR_INVALID_OBJECT_HANDLE;
	if (argument->class == NV01_DEVICE_0 && argument->parameters &&
	    (copy_from_user(&gpu, u64_to_user_ptr(argument->parameters), sizeof(gpu)) || gpu >= GPUS))
		return NV_ERR_INVALID_PARAM_STRUCT;
	if (file->count == OBJECTS)
		return NV_ERR_INSUFFICIENT_RESOURCES;
	file->objects[file->count++] =
		(struct rm_object){ .handle = argument->object, .class = argument->class, .gpu = gpu };
	return NV_OK;
}

static u32 remove_object(struct nv_file *file, u32 handle)
{
	struct rm_object *object = find_object(file, handle);

	if (!object)
		return NV_ERR_INVALID_OBJECT_HANDLE;
	*object = file->objects[--file->count];
	return NV_OK;
}

/* The resource manager's calls. `size`: of the argument, which tells the versions of a structure apart. */
static NAMED int rm_ioctl(struct nv_file *file, u32 command, void *argument, u32 size)
{
	const struct rm_control *control = &other_control;
	struct short_alloc *alloc = argument; /* NVOS64 begins like it */
	struct release *release = argument;
	struct control *called = argument;

	if (command == NV_ESC_RM_CONTROL && size == sizeof(*called)) {
		control = find_control(called->command);
	} else if (!(command == NV_ESC_RM_FREE && size == sizeof(*release)) &&
		   !(command == NV_ESC_RM_ALLOC && (size == sizeof(*alloc) || size == sizeof(struct alloc)))) {
		return -EINVAL;
	}
	if (control->writes)
		os_acquire_rwlock_write(api_lock);
	else
		os_acquire_rwlock_read(api_lock);
	if (command == NV_ESC_RM_CONTROL)
		called->status = run_control(file, control, called);
	else if (command == NV_ESC_RM_FREE)
		release->status = remove_object(file, release->object);
	else if (size == sizeof(*alloc))
		alloc->status = add_object(file, alloc);
	else
		((struct alloc *)argument)->status = add_object(file, alloc);
	if (control->writes)
		os_release_rwlock_write(api_lock);
	else
		os_release_rwlock_read(api_lock);
	return 0;
}

static NAMED int nvidia_ioctl(struct file *opened, unsigned int command, unsigned long pointer)
{
	void __user *argument = (void __user *)pointer;
	u32 number = _IOC_NR(command), size = _IOC_SIZE(command);
	u64 copy[LARGEST_ARGUMENT / sizeof(u64)];
	struct xfer xfer;
	int error;

	if (number == NV_ESC_IOCTL_XFER_CMD) {
		if (size != sizeof(xfer) || copy_from_user(&xfer, argument, sizeof(xfer)))
			return -EINVAL;
		argument = u64_to_user_ptr(xfer.pointer);
		number = xfer.command;
		size = xfer.size;
	}
	if (size > sizeof(copy))
		return -EINVAL;
	if (copy_from_user(copy, argument, size))
		return -EFAULT;
	atomic64_inc(&calls);
	error = rm_ioctl(opened->private_data, number, copy, size);
	if (!error && copy_to_user(argument, copy, size))
		error = -EFAULT;
	return error;
}

static NAMED long nvidia_unlocked_ioctl(struct file *opened, unsigned int command, unsigned long argument)
{
	return nvidia_ioctl(opened, command, argument);
}

static int nvidia_open(struct inode *inode, struct file *opened)
{
	if (iminor(inode) >= GPUS && iminor(inode) != NV_CONTROL_MINOR)
		return -ENODEV;
	opened->private_data = kzalloc(sizeof(struct nv_file), GFP_KERNEL);
	return opened->private_data ? 0 : -ENOMEM;
}

static int nvidia_close(struct inode *inode, struct file *opened)
{
	kfree(opened->private_data);
	return 0;
}

static const struct file_operations nvidia_fops = {
	.owner = THIS_MODULE,
	.open = nvidia_open,
	.release = nvidia_close,
	.unlocked_ioctl = nvidia_unlocked_ioctl,
};

/* Locks are in allocated memory, as the driver's are. */
static struct rw_semaphore *os_alloc_rwlock(void)
{
	struct rw_semaphore *lock = kzalloc(sizeof(*lock), GFP_KERNEL);

	if (lock)
		init_rwsem(lock);
	return lock;
}

static struct semaphore *os_alloc_semaphore(void)
{
	struct semaphore *lock = kzalloc(sizeof(*lock), GFP_KERNEL);

	if (lock)
		sema_init(lock, 1);
	return lock;
}

static void free_locks(void)
{
	kfree(api_lock);
	for (int i = 0; i < GPUS; i++)
		kfree(gpu_locks[i]);
}

/* Device nodes are made by whoever loads it, as nvidia-modprobe does. */
static int __init nvidia_init_module(void)
{
	bool missing = !(api_lock = os_alloc_rwlock());
	int error = 0;

	for (int i = 0; i < GPUS; i++)
		missing |= !(gpu_locks[i] = os_alloc_semaphore());
	if (!missing)
		error = register_chrdev(NV_MAJOR, "nvidia", &nvidia_fops);
	if (missing || error)
		free_locks();
	return missing ? -ENOMEM : error;
}

static void __exit nvidia_exit_module(void)
{
	unregister_chrdev(NV_MAJOR, "nvidia");
	free_locks();
}

module_init(nvidia_init_module);
module_exit(nvidia_exit_module);
MODULE_DESCRIPTION("A stand-in for NVIDIA's driver: its ioctl calls and locks, without a GPU");
MODULE_LICENSE("GPL");
