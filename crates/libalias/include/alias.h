/*
 * alias.h: network address translation with the interface of FreeBSD's
 * libalias(3), over Fingerpost's engine.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Names, types, values and return codes are those of FreeBSD stable/14 and
 * newer, so that programs written for it compile and run unchanged. Link
 * with -lalias; `pkg-config --cflags --libs libalias` says how.
 *
 * What is different, and only for the better:
 *
 *  - A `struct libalias *` and a `struct alias_link *` are names, not
 *    addresses: they are looked up, never followed. NULL, a pointer that was
 *    freed or deleted, one of another instance and any other value are
 *    refused: the call fails, or does nothing where it cannot fail. (One
 *    name comes again: a redirect of the same protocol, alias address and
 *    alias port as the one deleted last is called as that one was, for
 *    FreeBSD's own tests count on malloc(3) doing so.)
 *  - Two threads may each use instances of their own at the same time, and
 *    even share one: calls on the same instance wait for each other. (Not
 *    from a signal handler that has interrupted such a call.)
 *  - No call reads a file, writes a log, opens a socket, starts a thread or
 *    ends the process. The mode bits that ask for such things are kept, and
 *    have no effect. LibAliasInit registers nothing with atexit(3).
 *  - A packet is as long as its IP header says, and refused when that is
 *    more than `maxpacketsize`. Nothing behind it is read; a helper that
 *    lengthens a packet keeps within `maxpacketsize`.
 *  - The number of links is limited (LIBALIAS_MAX_LINKS, or what
 *    LibAliasInitSized was given), those by proxy rules to 65,536. At the
 *    limit new ones are refused; those that are there go on working.
 *  - Time is a monotonic clock that may lag by a second; or it is the
 *    caller's (LibAliasSetTime, LibAliasShareTime). A link expires in time
 *    however few packets there are, and nothing ever walks them all.
 *  - Every port of a range is used before the first refusal.
 *  - FTP, PPTP, IRC, TFTP, RTSP with PNA, NetBIOS and (once its port is set)
 *    Skinny are understood from the start; CU-SeeMe is not.
 *
 * Ports and addresses are in network byte order, but for those of
 * LibAliasSetAliasPortRange and LibAliasSetSkinnyPort.
 */
#ifndef FINGERPOST_ALIAS_H
#define FINGERPOST_ALIAS_H

#include <sys/types.h>
#include <stdint.h>
#include <netinet/in_systm.h>
#include <netinet/in.h>
#include <netinet/ip.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An engine with its links, rules and modes. */
struct libalias;

/* A redirect rule. */
struct alias_link;

/* Bytes that a program may set aside for text about an instance. */
#define LIBALIAS_BUF_SIZE		128

/* ---- what the packet functions return ---- */

/* The call was wrong, or there is no room for a new link. */
#define PKT_ALIAS_ERROR			(-1)
/* Translated, or to be passed on as it is. */
#define PKT_ALIAS_OK			1
/* Not translated: denied, not understood, or malformed. */
#define PKT_ALIAS_IGNORED		2
/* A later fragment, and the first one has not come yet. */
#define PKT_ALIAS_UNRESOLVED_FRAGMENT	3
/* Translated; and it is a first fragment, others may have been waiting. */
#define PKT_ALIAS_FOUND_HEADER_FRAGMENT	4

/* ---- modes, for LibAliasSetMode ---- */

/* Kept; without effect (there is no log). */
#define PKT_ALIAS_LOG			0x01
/* New connections from outside are ignored. */
#define PKT_ALIAS_DENY_INCOMING		0x02
/* Ports are left as they are where they are free. */
#define PKT_ALIAS_SAME_PORTS		0x04
/* Kept; without effect (no socket is needed to hold a port). */
#define PKT_ALIAS_USE_SOCKETS		0x08
/* Only sources of RFC 1918 are translated; others pass as they are. */
#define PKT_ALIAS_UNREGISTERED_ONLY	0x10
/* Links are forgotten when the alias address changes. */
#define PKT_ALIAS_RESET_ON_ADDR_CHANGE	0x20
/* Only proxy rules are obeyed. */
#define PKT_ALIAS_PROXY_ONLY		0x40
/* In and Out are exchanged. */
#define PKT_ALIAS_REVERSE		0x80
/* Kept; without effect (no firewall is touched). */
#define PKT_ALIAS_PUNCH_FW		0x100
/* Kept; without effect here (a word between ipfw and its instances). */
#define PKT_ALIAS_SKIP_GLOBAL		0x200
/* As UNREGISTERED_ONLY, and sources of RFC 6598 as well. */
#define PKT_ALIAS_UNREGISTERED_CGN	0x400
/* UDP: one alias port for an inside address and port, whatever the remote
 * (endpoint-independent mapping, RFC 4787). */
#define PKT_ALIAS_UDP_EIM		0x800

/* ---- instances ---- */

/* A new instance (of NULL), or `la` as if it were new, under the same
 * pointer. Its modes are SAME_PORTS, USE_SOCKETS and RESET_ON_ADDR_CHANGE.
 * NULL when there is no room, or when `la` is no instance. */
struct libalias	*LibAliasInit(struct libalias *la);
/* Frees an instance and all that is its own. */
void		 LibAliasUninit(struct libalias *la);
/* The address that packets leave with. 0.0.0.0: they keep their own. */
void		 LibAliasSetAddress(struct libalias *la, struct in_addr addr);
/* The ports that links get, in host order, both included. (0, 0): 32768 to
 * 65535. A range that ends before it begins changes nothing. */
void		 LibAliasSetAliasPortRange(struct libalias *la,
		    unsigned short port_low, unsigned short port_high);
/* Sets the modes of `mask` to those of `flags`. Returns all modes; 0 when
 * `la` is no instance. */
unsigned int	 LibAliasSetMode(struct libalias *la, unsigned int flags,
		    unsigned int mask);
/* Where new connections from outside go: INADDR_ANY as they are addressed,
 * INADDR_NONE to the alias address, else to this host. */
void		 LibAliasSetTarget(struct libalias *la, struct in_addr addr);
/* Without effect: no firewall is touched. */
void		 LibAliasSetFWBase(struct libalias *la, unsigned int base,
		    unsigned int num);
/* Where Skinny's call managers are, in host order, typically 2000; 0, as in
 * a new instance: Skinny is not understood. */
void		 LibAliasSetSkinnyPort(struct libalias *la, unsigned int port);

/* ---- packets: IPv4, from the first byte of the header ---- */

int		 LibAliasIn(struct libalias *la, void *packet,
		    int maxpacketsize);
int		 LibAliasOut(struct libalias *la, void *packet,
		    int maxpacketsize);
/* As LibAliasOut; with `create` 0 only links that are there are used, and
 * a packet without one is PKT_ALIAS_IGNORED. */
int		 LibAliasOutTry(struct libalias *la, void *packet,
		    int maxpacketsize, int create);
/* Undoes LibAliasOut: the source becomes what it was inside. */
int		 LibAliasUnaliasOut(struct libalias *la, void *packet,
		    int maxpacketsize);

/* ---- redirects ---- */

/* What arrives at alias_addr:alias_port from dst_addr:dst_port goes to
 * src_addr:src_port. A zero src_addr or alias_addr is the alias address,
 * whatever it is at the time; a zero dst_addr or dst_port is any. NULL when
 * the rule is not taken. `proto`: IPPROTO_TCP, IPPROTO_UDP. */
struct alias_link *LibAliasRedirectPort(struct libalias *la,
		    struct in_addr src_addr, unsigned short src_port,
		    struct in_addr dst_addr, unsigned short dst_port,
		    struct in_addr alias_addr, unsigned short alias_port,
		    unsigned char proto);
/* One host behind one address, both ways, all protocols. */
struct alias_link *LibAliasRedirectAddr(struct libalias *la,
		    struct in_addr src_addr, struct in_addr alias_addr);
/* A protocol without ports. */
struct alias_link *LibAliasRedirectProto(struct libalias *la,
		    struct in_addr src_addr, struct in_addr dst_addr,
		    struct in_addr alias_addr, unsigned char proto);
/* Makes a fully specified redirect one-shot: it is gone after its first use,
 * and when the alias address changes. 0, or -1. */
int		 LibAliasRedirectDynamic(struct libalias *la,
		    struct alias_link *link);
/* Deletes a redirect; nothing when there is no such one (any more). */
void		 LibAliasRedirectDelete(struct libalias *la,
		    struct alias_link *link);
/* Adds a server to a redirect; its servers take turns. 0, or -1. */
int		 LibAliasAddServer(struct libalias *la,
		    struct alias_link *link, struct in_addr addr,
		    unsigned short port);
/* Adds or deletes a proxy rule, in the words of libalias(3). 0, or -1. */
int		 LibAliasProxyRule(struct libalias *la, const char *cmd);

/* ---- fragments that came before their first one ---- */

/* Keeps a fragment, as LibAliasIn left it, in memory of malloc(3), until
 * LibAliasGetFragment gives it back. After 30 s, or with the instance, it is
 * freed. PKT_ALIAS_OK; or PKT_ALIAS_ERROR when too many are kept, and it is
 * still the caller's. At least an IPv4 header must be there. */
int		 LibAliasSaveFragment(struct libalias *la, void *fragment);
/* A fragment of the packet that `header` is the first of, the caller's to
 * free again; NULL when there is none (any more). */
void		*LibAliasGetFragment(struct libalias *la, void *header);
/* Gives a fragment the destination of its first one. */
void		 LibAliasFragmentIn(struct libalias *la, void *header,
		    void *fragment);

/* ---- the rest ---- */

/* Whether a link was made since the last time this was asked. */
int		 LibAliasCheckNewLink(struct libalias *la);
/* The Internet checksum of `nbytes` bytes, to be stored as it is. `la` is
 * not looked at. */
unsigned short	 LibAliasInternetChecksum(struct libalias *la,
		    unsigned short *data, int nbytes);

/* A module is the name of what is understood: all of them are built in, no
 * file is read. "ftp", "pptp", "irc", "tftp", "rtsp", "smedia" (the two before),
 * "nbt" and "skinny" are loaded from the start, "sip" is not. A path does as
 * well, "/usr/lib/libalias_ftp.so". What is loaded counts for new links of all
 * instances. 0, or ENOENT; RefreshModules goes back to the start. */
int		 LibAliasLoadModule(char *name);
int		 LibAliasUnLoadAllModule(void);
int		 LibAliasRefreshModules(void);

/* ==== what FreeBSD's libalias does not have ==== */

/* Set in programs that want to know which library they compile with. */
#define LIBALIAS_FINGERPOST		1

/* Unloads one module. 0, or ENOENT. */
int		 LibAliasUnLoadModule(char *name);

/* How many links an instance of LibAliasInit has at most, unless a number
 * stands in the environment variable LIBALIAS_MAX_LINKS (16777214 at most):
 * so it can be raised for a program that was not written for this library.
 * Memory is taken as links come. */
#define LIBALIAS_MAX_LINKS		1048576u

/* As LibAliasInit, with a limit of its own on links, 16777214 at most; 0 is
 * LIBALIAS_MAX_LINKS. Memory is taken as links come. */
struct libalias	*LibAliasInitSized(struct libalias *la,
		    unsigned int max_links);

/* For LibAliasSetTime and LibAliasShareTime: go back to the clock. */
#define LIBALIAS_TIME_CLOCK		UINT64_MAX

/* It is `millis` for this instance from now on, on any clock of milliseconds
 * that the caller likes, until it is set again. */
void		 LibAliasSetTime(struct libalias *la, uint64_t millis);
/* It is `millis` for all instances without a time of their own. */
void		 LibAliasShareTime(uint64_t millis);

/* What a link may be doing, for LibAliasSetTimeout. */
#define LIBALIAS_TIMEOUT_TCP_OPENING		0
#define LIBALIAS_TIMEOUT_TCP_ESTABLISHED	1
#define LIBALIAS_TIMEOUT_TCP_HALF_CLOSED	2
#define LIBALIAS_TIMEOUT_TCP_CLOSED		3
#define LIBALIAS_TIMEOUT_TCP_RESET		4
#define LIBALIAS_TIMEOUT_UDP_UNREPLIED		5
#define LIBALIAS_TIMEOUT_UDP			6
#define LIBALIAS_TIMEOUT_ICMP			7
#define LIBALIAS_TIMEOUT_GRE			8
#define LIBALIAS_TIMEOUT_OTHER			9
#define LIBALIAS_TIMEOUT_DNS			10

/* A link that is doing this ends when it was not used for so many seconds,
 * those that are there as well. 0, or -1: no such instance or state, or no
 * seconds. */
int		 LibAliasSetTimeout(struct libalias *la, int doing,
		    unsigned int seconds);

/* A packet of a batch; `result` is what LibAliasIn or LibAliasOut would
 * have returned. */
struct libalias_packet {
	void	*packet;
	int	 maxpacketsize;
	int	 result;
};

/* Translates packets in order, faster than one after the other; 32 to 64 are
 * best. Returns how many were PKT_ALIAS_OK or FOUND_HEADER_FRAGMENT, or
 * PKT_ALIAS_ERROR. No two of a batch may lie in the same memory. */
int		 LibAliasInBatch(struct libalias *la,
		    struct libalias_packet *packets, int count);
int		 LibAliasOutBatch(struct libalias *la,
		    struct libalias_packet *packets, int count);

/* Frees what has expired, while there is nothing else to do: looks at
 * `budget` links at most. Never needed. Returns how many were freed. */
int		 LibAliasMaintain(struct libalias *la, int budget);

#ifdef __cplusplus
}
#endif

#endif /* FINGERPOST_ALIAS_H */
