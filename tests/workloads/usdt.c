/* USDT probes whose hits are known, written without a header: the notes of systemtap's <sys/sdt.h> by hand.
 *
 *	usdt [--wait] [--linger] [ROUNDS=100]
 *
 * Per round: shop:sale once, in sell(); shop:look three times, in two places of browse(); shop:audit, which a semaphore
 * switches on, once in audit(). The truth has "waits" without times: only `calls` counts. main → sell, browse, audit. */
#include "workload.h"

#define PROBE(name, counter, arguments, ...)                                                                           \
	__asm__ volatile("990:	nop\n"                                                                                  \
			 ".pushsection .note.stapsdt, \"\", \"note\"\n"                                                \
			 ".balign 4\n"                                                                                 \
			 ".4byte 992f - 991f, 994f - 993f, 3\n"                                                        \
			 "991:	.asciz \"stapsdt\"\n"                                                                   \
			 "992:	.balign 4\n"                                                                            \
			 "993:	.8byte 990b, _.stapsdt.base, " counter "\n"                                            \
			 ".asciz \"shop\"\n"                                                                           \
			 ".asciz \"" name "\"\n"                                                                       \
			 ".asciz \"" arguments "\"\n"                                                                  \
			 "994:	.balign 4\n"                                                                            \
			 ".popsection\n" ::__VA_ARGS__)

__asm__(".pushsection .stapsdt.base, \"a\", \"progbits\"\n"
	"_.stapsdt.base: .space 1\n"
	".popsection\n");

/* The number of observers. */
__attribute__((used, section(".probes"))) volatile unsigned short audit_semaphore;

static NAMED void sell(struct wait_truth *w, long number)
{
	w->calls++;
	PROBE("sale", "0", "8@%%rdi -4@%%esi", "D"(number), "S"((int)-number));
	KEEP_FRAME();
}

static NAMED void browse(struct wait_truth *w)
{
	w->calls += 3;
	PROBE("look", "0", "");
	for (int i = 0; i < 2; i++)
		PROBE("look", "0", "");
	KEEP_FRAME();
}

static NAMED void audit(struct wait_truth *w)
{
	if (audit_semaphore) {
		w->calls++;
		PROBE("audit", "audit_semaphore", "");
	}
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	struct wait_truth *sold, *looked, *audited;
	struct thread_truth begin;
	long rounds;

	workload_begin(argc, argv);
	rounds = workload_number(0, 100, 1000000);
	sold = new_wait("sell");
	looked = new_wait("browse");
	audited = new_wait("audit");
	open_gate(NULL, NULL);
	begin = thread_now();
	for (long i = 0; i < rounds; i++) {
		sell(sold, i);
		browse(looked);
		audit(audited);
	}
	thread_done(&begin);
	return workload_end(begin.wall_ns);
}
