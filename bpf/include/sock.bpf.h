/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel's sockets, as far as addresses and ports are read (include/net/sock.h). */
#ifndef STALLSCOPE_SOCK_BPF_H
#define STALLSCOPE_SOCK_BPF_H

#include "kernel.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct socket;

struct ns_common {
	unsigned int inum;
};

struct net {
	struct ns_common ns;
};

struct possible_net {
	struct net *net;
};

struct in6_address {
	u8 bytes[16];
};

struct sock_common {
	u32 skc_daddr;
	u32 skc_rcv_saddr;
	u16 skc_dport;
	u16 skc_num;
	u16 skc_family;
	unsigned char skc_state;
	struct possible_net skc_net;
	struct in6_address skc_v6_daddr;
	struct in6_address skc_v6_rcv_saddr;
};

struct sock {
	struct sock_common __sk_common;
	u16 sk_type;
	u16 sk_protocol;
	struct socket *sk_socket;
};

#pragma clang attribute pop

#endif
