/*
 * alias_mod.h: handlers of a program's own, that see packets of links.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Names, types, values and return codes are those of FreeBSD's alias_mod.h,
 * so that handlers written for it compile unchanged as far as they look at
 * nothing but packets and what struct alias_data tells. What modules call
 * inside of FreeBSD's library (alias_local.h) is not here.
 *
 * What is different:
 *
 *  - A handler may call any function of alias.h, on its own instance too; it
 *    must not free that one.
 *  - `lnk` is not NULL, and names a link that nothing can be done to.
 *  - A handler sees a packet after its link was made, as it came; where a
 *    packet is refused it sees none. `dport` of what comes in is the port
 *    inside, not a part of the packet.
 *  - The array is read when it is attached. All of it is attached, or none.
 *  - No file is loaded: a program brings its handlers along.
 */
#ifndef FINGERPOST_ALIAS_MOD_H
#define FINGERPOST_ALIAS_MOD_H

#include <sys/types.h>
#include <sys/queue.h>
#include <alias.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which way packets go; both may be asked for. */
#define IN	1
#define OUT	2

/* Of which protocol they are; IP is all that is neither TCP nor UDP. */
#define IP	1
#define TCP	2
#define UDP	4

/* What a handler is told. Ports are in network byte order. */
struct alias_data {
	struct alias_link	*lnk;
	struct in_addr		*oaddr;	/* inside, of what comes in; else NULL */
	struct in_addr		*aaddr;	/* alias */
	uint16_t		*aport;	/* NULL without ports, as the next two */
	uint16_t		*sport;
	uint16_t		*dport;
	uint16_t		 maxpktsize;	/* 0: its length must stay */
};

/* A handler. Lower priorities come first; the first whose `fingerprint` is 0
 * has the packet, and no other. Where its `protohandler` is negative for UDP
 * that comes in, the packet is PKT_ALIAS_IGNORED. It keeps checksums right
 * that it has made wrong. */
struct proto_handler {
	u_int	 pri;
	int16_t	 dir;
	uint8_t	 proto;
	int	(*fingerprint)(struct libalias *, struct alias_data *);
	int	(*protohandler)(struct libalias *, struct ip *,
		    struct alias_data *);
	LIST_ENTRY(proto_handler) entries;
};

/* The priority behind the last handler of an array. */
#define EOH	-1

/* Attaches handlers for all instances: 0; EEXIST when there is one of the
 * same priority, direction and protocol; EINVAL without functions or beyond
 * 1,024; -1 when the array is empty. */
int	LibAliasAttachHandlers(struct proto_handler *handlers);
/* Detaches them: 0; ENOENT when one of them was not attached; -1 when the
 * array is empty. A call that has begun in another thread may still use
 * them. */
int	LibAliasDetachHandlers(struct proto_handler *handlers);

#ifdef __cplusplus
}
#endif

#endif /* FINGERPOST_ALIAS_MOD_H */
