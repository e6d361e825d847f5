/* Many threads that wake often, but leave the cores half idle, and many processes that live briefly: threads COUNT
 * PROCESSES. Ends by itself. */
#include <err.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void *waits(void *argument)
{
	for (;;)
		usleep(200000);
	return argument;
}

int main(int argc, char **argv)
{
	pthread_attr_t how;

	if (argc != 3)
		errx(2, "usage: threads COUNT PROCESSES");
	alarm(120);
	pthread_attr_init(&how);
	pthread_attr_setstacksize(&how, 64 << 10);
	for (int left = atoi(argv[1]); left--;) {
		pthread_t thread;

		if (pthread_create(&thread, &how, waits, NULL))
			break;
	}
	printf("ready %d\n", getpid());
	fflush(stdout);
	for (int left = atoi(argv[2]); left--;) {
		if (!fork())
			_exit(0);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		usleep(500);
	}
	for (;;)
		pause();
}
