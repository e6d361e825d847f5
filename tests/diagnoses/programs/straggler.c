/* Two ranks exchange their sums over a socket in each step; rank 1 needs 50 ms longer for its data. */
#include "diagnosis.h"

static KEEP void load_batch(int rank)
{
	if (rank == 1)
		sleep_us(50000);
	burn_us(300);
}

static KEEP void all_reduce(int peer)
{
	char sum[64] = "";

	need(send(peer, sum, sizeof(sum), 0) == sizeof(sum), "send");
	need(recv(peer, sum, sizeof(sum), MSG_WAITALL) == sizeof(sum), "recv");
}

static KEEP void train(int rank, int peer)
{
	for (;;) {
		load_batch(rank);
		all_reduce(peer);
	}
}

int main(void)
{
	int pair[2], child;

	need(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
	child = start_process(NULL);
	if (!child)
		train(1, pair[1]);
	ready((int[]){ getpid(), child, 0 });
	train(0, pair[0]);
}
