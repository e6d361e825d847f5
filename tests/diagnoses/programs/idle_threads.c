/* A server whose main thread waits for the disk; its other threads, each of a kind of its own, have nothing to do. */
#include <netinet/in.h>

#include "diagnosis.h"

#define BLOCK (1 << 12) /* larger ones take longer to copy than a fast disk takes to write them */

static char block[BLOCK];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t later = PTHREAD_COND_INITIALIZER;

static KEEP void *accept_clients(void *unused)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	need(listener >= 0 && !bind(listener, (struct sockaddr *)&any, sizeof(any)) && !listen(listener, 4), "listen");
	for (;;)
		close(accept(listener, NULL, NULL));
	return unused;
}

static KEEP void *close_files(void *unused)
{
	pthread_mutex_lock(&lock);
	for (;;)
		pthread_cond_wait(&later, &lock);
	return unused;
}

static KEEP void rebuild_index(int file)
{
	need(pwrite(file, block, BLOCK, 0) == BLOCK, "pwrite");
	need(!fdatasync(file), "fdatasync");
}

int main(void)
{
	char name[] = "stallscope-idle-XXXXXX";
	int file = mkstemp(name);

	need(file >= 0, name);
	unlink(name);
	start("acceptor", accept_clients, NULL);
	start("closer", close_files, NULL);
	ready_alone();
	for (;;)
		rebuild_index(file);
}
