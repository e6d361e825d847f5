/* A client asks a server in another process, which sleeps 20 ms for each answer. */
#include "diagnosis.h"

static KEEP void query(int server)
{
	char answer[16] = "?";

	need(send(server, answer, 1, 0) == 1, "send");
	need(recv(server, answer, sizeof(answer), 0) == 1, "recv");
}

static KEEP void handle_request(int client)
{
	char request[16];

	need(recv(client, request, sizeof(request), 0) == 1, "recv");
	sleep_us(20000);
	need(send(client, request, 1, 0) == 1, "send");
}

int main(void)
{
	int pair[2], child;

	need(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
	child = start_process("server");
	if (!child)
		for (;;)
			handle_request(pair[1]);
	ready((int[]){ getpid(), child, 0 });
	for (;;) {
		query(pair[0]);
		burn_us(500);
	}
}
