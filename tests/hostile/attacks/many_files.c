/* A process that maps code of very many files, each another library: many_files LIBRARY FOLDER COUNT. Ends by itself. */
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	static char content[1 << 16];
	char path[4096];
	int source;
	long size;

	if (argc != 4)
		errx(2, "usage: many_files LIBRARY FOLDER COUNT");
	alarm(120);
	source = open(argv[1], O_RDONLY | O_CLOEXEC);
	size = read(source, content, sizeof(content));
	if (size <= 0)
		err(1, "%s", argv[1]);
	for (int number = atoi(argv[3]); number--;) {
		int file;

		snprintf(path, sizeof(path), "%s/%d.so", argv[2], number);
		file = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0755);
		/* What follows the sections tells them apart. */
		if (file < 0 || write(file, content, size) != size || write(file, &number, sizeof(number)) < 0)
			err(1, "%s", path);
		if (mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) == MAP_FAILED)
			err(1, "mmap");
		close(file);
		unlink(path);
	}
	printf("ready %d\n", getpid());
	fflush(stdout);
	for (;;)
		usleep(5000);
}
