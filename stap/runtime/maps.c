/* Becomes part of SystemTap's linux/task_finder2.c, before stap_task_finder_post_init().
 *
 * SystemTap learns what processes have mapped by interrupting all threads of the machine, so that each main thread
 * tells of itself. epoll_wait(2), semop(2) and some more then fail with EINTR (signal(7) lists them), which a traced
 * program need not be able to handle. Here the maps are read without the help of the processes. */

struct stallscope_mapping {
	struct path path;
	unsigned long addr, length, offset, flags;
};

/* Takes down the files that a process has mapped. Returns how many; the caller puts the paths and frees the array. */
static int stallscope_files_of(struct mm_struct *mm, struct stallscope_mapping **found)
{
	struct vm_area_struct *vma;
	int files = 0, tries = 0;

	*found = NULL;
	while (!mmap_read_trylock(mm)) {
		if (++tries == 100)
			return 0;
		schedule_timeout_uninterruptible(1);
	}
	{
		VMA_ITERATOR(vmi, mm, 0);
		for_each_vma (vmi, vma) {
			if (vma->vm_file)
				files++;
		}
	}
	if (files)
		*found = _stp_vzalloc(sizeof(struct stallscope_mapping) * files);
	if (*found) {
		struct stallscope_mapping *each = *found;

		VMA_ITERATOR(vmi, mm, 0);
		for_each_vma (vmi, vma) {
			if (!vma->vm_file)
				continue;
			each->path = vma->vm_file->f_path;
			path_get(&each->path);
			each->addr = vma->vm_start;
			each->length = vma->vm_end - vma->vm_start;
			each->offset = vma->vm_pgoff << PAGE_SHIFT;
			each->flags = vma->vm_flags;
			each++;
		}
	}
	mmap_read_unlock(mm);
	return *found ? files : 0;
}

/* Tells those who want to know of the maps of all processes that this one has these files. */
static void stallscope_tell_files(struct task_struct *tsk, struct stallscope_mapping *each, char *buffer)
{
	struct list_head *node;
	char *path = d_path(&each->path, buffer, PATH_MAX);

	if (IS_ERR_OR_NULL(path))
		return;
	list_for_each (node, &__stp_task_finder_list) {
		struct stap_task_finder_target *tgt = list_entry(node, struct stap_task_finder_target, list);

		if (tgt->engine_attached && tgt->mmap_events && !STALLSCOPE_OF_PROGRAM(tgt))
			__stp_call_mmap_callbacks(tgt, tsk, path, each->path.dentry, each->addr, each->length,
						  each->offset, each->flags);
	}
}

static void stallscope_read_process(struct task_struct *tsk, char *buffer)
{
	struct stallscope_mapping *files;
	struct mm_struct *mm = get_task_mm(tsk);
	int number, i;

	if (!mm)
		return;
	number = stallscope_files_of(mm, &files);
	mmput(mm);
	for (i = 0; i < number; i++) {
		stallscope_tell_files(tsk, &files[i], buffer);
		path_put(&files[i].path);
	}
	_stp_vfree(files);
}

/* Of all processes. Called where it may sleep. */
static void stallscope_read_maps(void)
{
	struct task_struct *tsk, **all;
	int number = 0, room = 0, i;
	char *buffer = _stp_kmalloc(PATH_MAX);

	rcu_read_lock();
	for_each_process (tsk)
		room++;
	rcu_read_unlock();
	room += room / 4 + 64;
	all = _stp_vzalloc(sizeof(*all) * room);
	if (!buffer || !all)
		goto out;
	rcu_read_lock();
	for_each_process (tsk) {
		if ((_stp_target && tsk->tgid != _stp_target) || (tsk->flags & PF_KTHREAD))
			continue;
		if (number == room)
			break;
		get_task_struct(tsk);
		all[number++] = tsk;
	}
	rcu_read_unlock();
	for (i = 0; i < number; i++) {
		stallscope_read_process(all[i], buffer);
		put_task_struct(all[i]);
		cond_resched();
	}
out:
	if (all)
		_stp_vfree(all);
	if (buffer)
		_stp_kfree(buffer);
}
