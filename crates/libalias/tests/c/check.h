/*
 * What the cases share: counting, addresses, packets, checks.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef CHECK_H
#define CHECK_H

#include <alias.h>
#include <arpa/inet.h>
#include <netinet/ip_icmp.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Counts a failure, and says where and what. */
#define CHECK(what) check((what) != 0, #what, __FILE__, __LINE__)
#define EQUAL(have, want) \
	equal((long long)(have), (long long)(want), #have, __FILE__, __LINE__)
void check(int is_true, const char *what, const char *file, int line);
void equal(long long have, long long want, const char *what, const char *file,
    int line);

/* Says where the next checks are called from. */
#define HERE (here_file = __FILE__, here_line = __LINE__)
extern const char *here_file;
extern int here_line;

/* The addresses of the cases. */
extern const struct in_addr masq, pub, pub2, prv1, prv2, prv3, cgn, ext, any;
struct in_addr addr(const char *text);
int same(struct in_addr a, struct in_addr b);

/* Random numbers that are the same in every run. */
uint32_t draw(uint32_t below);

#define ROOM 256
#define UDP_LEN 64

/* A packet in memory that is exactly as long as it is. */
struct ip *raw_packet(struct in_addr src, struct in_addr dst, uint8_t proto,
    size_t len);
struct ip *udp_packet(struct in_addr src, uint16_t sport, struct in_addr dst,
    uint16_t dport);
struct udphdr *udp_of(struct ip *ip);
/* Whether all its sums are right, worked out here. */
int sums_are_right(const struct ip *ip);

/* The protocol of raw packets. */
extern uint8_t raw_protocol;

/* Out: the source becomes `want`. Gives the alias port, 0 when it failed. */
uint16_t out_udp(struct libalias *la, struct in_addr src, uint16_t sport,
    struct in_addr dst, uint16_t dport, struct in_addr want);
void out_udp_fails(struct libalias *la, struct in_addr src, uint16_t sport,
    struct in_addr dst, uint16_t dport);
void out_raw(struct libalias *la, struct in_addr src, struct in_addr dst,
    struct in_addr want);
/* In: the destination becomes `want`. */
void in_udp(struct libalias *la, struct in_addr src, uint16_t sport,
    struct in_addr dst, uint16_t dport, struct in_addr want,
    uint16_t want_port);
void in_udp_fails(struct libalias *la, struct in_addr src, uint16_t sport,
    struct in_addr dst, uint16_t dport);
void in_raw(struct libalias *la, struct in_addr src, struct in_addr dst,
    struct in_addr want);
void in_raw_fails(struct libalias *la, struct in_addr src, struct in_addr dst);

#define OUT_UDP (HERE, out_udp)
#define OUT_UDP_FAILS (HERE, out_udp_fails)
#define OUT_RAW (HERE, out_raw)
#define IN_UDP (HERE, in_udp)
#define IN_UDP_FAILS (HERE, in_udp_fails)
#define IN_RAW (HERE, in_raw)
#define IN_RAW_FAILS (HERE, in_raw_fails)

/* A case and its name. */
struct test {
	const char *name;
	void (*run)(void);
};
extern const struct test instance_tests[], out_tests[], in_tests[],
    independent_tests[], handle_tests[], packet_tests[], thread_tests[],
    new_tests[];

#endif
