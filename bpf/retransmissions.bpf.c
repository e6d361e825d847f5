/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* TCP segments that the kernel sends again, by connection: what a thread waits for on it comes later. They are sent by
 * timers and by what the network brings, whoever runs there: user space finds the threads that wait on the connection. */
#include "maps.bpf.h"
#include "sock.bpf.h"
#include "thread.bpf.h"

char LICENSE[] SEC("license") = "GPL";

#define INET 2
#define INET6 10
#define TCP_SYN_SENT 2 /* include/net/tcp_states.h */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct inet_connection_sock {
	u8 icsk_backoff;
};

/* Of a tracepoint's record only its type is of use: since 6.17 it has `err`, and segments that could not be sent are
 * reported, too. */
struct trace_event_raw_tcp_retransmit_skb {
	int err;
};

#pragma clang attribute pop

/* A connection, by its end that sends. Mirrored in tracers/engines/ebpf/retransmissions.py. */
struct resending_end {
	u32 netns;
	u16 family;
	u16 local_port;
	u16 remote_port;
	u16 unused;
	u8 local[16];
	u8 remote[16];
};

struct resent {
	u64 count;
	u64 unanswered; /* ns between two of them with no answer in between */
	u64 last;	/* CLOCK_MONOTONIC ns */
};

/* When it is full, segments of other connections are only counted, as lost, until user space has taken these out. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct resending_end);
	__type(value, struct resent);
} retransmissions SEC(".maps");

static __always_inline bool describe_end(struct resending_end *end, struct sock *sk)
{
	end->family = BPF_CORE_READ(sk, __sk_common.skc_family);
	end->netns = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
	end->local_port = BPF_CORE_READ(sk, __sk_common.skc_num);
	end->remote_port = __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport));
	if (end->family == INET6 && bpf_core_field_exists(struct sock_common, skc_v6_daddr)) {
		BPF_CORE_READ_INTO(&end->remote, sk, __sk_common.skc_v6_daddr);
		BPF_CORE_READ_INTO(&end->local, sk, __sk_common.skc_v6_rcv_saddr);
		return true;
	}
	if (end->family != INET)
		return false;
	*(u32 *)end->remote = BPF_CORE_READ(sk, __sk_common.skc_daddr);
	*(u32 *)end->local = BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr);
	return true;
}

/* Whether nothing has been acknowledged since the last one: the timer waits for twice as long each time, and for the first
 * answer of the other end, it may wait for as long. */
static __always_inline bool is_unanswered(struct sock *sk)
{
	struct inet_connection_sock *connection = (void *)sk;

	return BPF_CORE_READ(sk, __sk_common.skc_state) == TCP_SYN_SENT || BPF_CORE_READ(connection, icsk_backoff);
}

/* The arguments: the socket, the segment, and since 6.17 the error with which it was not sent. */
SEC("raw_tp/tcp_retransmit_skb")
int tcp_resent(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	struct resending_end key = {};
	struct resent first = { .count = 1 }, *found;

	if (!running() || !sk)
		return 0;
	if (bpf_core_field_exists(struct trace_event_raw_tcp_retransmit_skb, err) && (int)ctx[2])
		return 0;
	if (!describe_end(&key, sk))
		return 0;
	first.last = bpf_ktime_get_ns();
	found = bpf_map_lookup_elem(&retransmissions, &key);
	if (found) { /* the socket is locked: there is no other writer */
		if (is_unanswered(sk))
			found->unanswered += first.last - found->last;
		found->last = first.last;
		found->count++;
	} else if (bpf_map_update_elem(&retransmissions, &key, &first, BPF_ANY)) {
		count(LOST_RETRANSMISSIONS);
	}
	return 0;
}
