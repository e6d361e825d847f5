/* As many mappings as a process may have, of files with long paths: many_maps FILE COUNT. Executable, so that they are
 * looked at, and none beside another one of the same pages, so that the kernel does not join them. */
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc != 3)
		errx(2, "usage: many_maps FILE COUNT");
	int fd = open(argv[1], O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		err(1, "%s", argv[1]);
	for (int left = atoi(argv[2]); left--;)
		if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
			break;
	alarm(120);
	printf("ready %d\n", getpid());
	fflush(stdout);
	for (;;)
		usleep(20000);
}
