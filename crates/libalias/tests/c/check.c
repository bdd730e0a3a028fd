/*
 * Counting, addresses, packets, and the runner.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "check.h"

static int failures;
uint8_t raw_protocol = 254;
const char *here_file;
int here_line;

void
check(int is_true, const char *what, const char *file, int line)
{
	if (is_true)
		return;
	failures++;
	printf("# %s:%d: not true: %s\n", file, line, what);
}

void
equal(long long have, long long want, const char *what, const char *file,
    int line)
{
	if (have == want)
		return;
	failures++;
	printf("# %s:%d: %s is %lld, not %lld\n", file, line, what, have, want);
}

/* Addresses by their bytes, first one first. */
#define ADDRESS(a, b, c, d) { htonl_constant(a, b, c, d) }
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define htonl_constant(a, b, c, d) \
	((uint32_t)(d) << 24 | (uint32_t)(c) << 16 | (b) << 8 | (a))
#else
#define htonl_constant(a, b, c, d) \
	((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (c) << 8 | (d))
#endif
const struct in_addr masq = ADDRESS(1, 2, 3, 4);
const struct in_addr pub = ADDRESS(1, 2, 222, 173);
const struct in_addr pub2 = ADDRESS(1, 2, 222, 174);
const struct in_addr prv1 = ADDRESS(10, 0, 222, 173);
const struct in_addr prv2 = ADDRESS(172, 16, 222, 173);
const struct in_addr prv3 = ADDRESS(192, 168, 222, 173);
const struct in_addr cgn = ADDRESS(100, 64, 222, 173);
const struct in_addr ext = ADDRESS(18, 52, 86, 120);
const struct in_addr any = { INADDR_ANY };

struct in_addr
addr(const char *text)
{
	struct in_addr result = { 0 };

	CHECK(inet_aton(text, &result) == 1);
	return (result);
}

int
same(struct in_addr a, struct in_addr b)
{
	return (a.s_addr == b.s_addr);
}

uint32_t
draw(uint32_t below)
{
	static uint64_t state = 0x0b61;
	uint64_t mixed;

	state += 0x9e3779b97f4a7c15u;
	mixed = (state ^ state >> 30) * 0xbf58476d1ce4e5b9u;
	mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
	return ((uint32_t)((mixed >> 32) * below >> 32));
}

/* The sum of 16-bit words in network order, as they stand there. */
static uint32_t
add_words(uint32_t sum, const void *data, size_t len)
{
	const uint8_t *byte = data;
	size_t i;

	for (i = 0; i < len; i++)
		sum += i % 2 == 0 ? (uint32_t)byte[i] << 8 : byte[i];
	while (sum > 0xffff)
		sum = (sum & 0xffff) + (sum >> 16);
	return (sum);
}

static uint32_t
pseudo_sum(const struct ip *ip)
{
	size_t len = ntohs(ip->ip_len) - ip->ip_hl * 4u;
	uint32_t sum = add_words(0, &ip->ip_src, 8);

	return (sum + ip->ip_p + (uint32_t)len);
}

int
sums_are_right(const struct ip *ip)
{
	const uint8_t *body = (const uint8_t *)ip + ip->ip_hl * 4;
	size_t len = ntohs(ip->ip_len) - ip->ip_hl * 4u;

	if (add_words(0, ip, ip->ip_hl * 4u) != 0xffff)
		return (0);
	if (ip->ip_p == IPPROTO_ICMP)
		return (add_words(0, body, len) == 0xffff);
	if (ip->ip_p != IPPROTO_UDP && ip->ip_p != IPPROTO_TCP)
		return (1);
	if (ip->ip_p == IPPROTO_UDP && body[6] == 0 && body[7] == 0)
		return (1);
	return (add_words(pseudo_sum(ip), body, len) == 0xffff);
}

struct ip *
raw_packet(struct in_addr src, struct in_addr dst, uint8_t proto, size_t len)
{
	struct ip *ip = calloc(1, len);

	if (ip == NULL)
		abort();
	ip->ip_v = 4;
	ip->ip_hl = 5;
	ip->ip_len = htons((uint16_t)len);
	ip->ip_id = htons((uint16_t)draw(65536));
	ip->ip_ttl = 64;
	ip->ip_p = proto;
	ip->ip_src = src;
	ip->ip_dst = dst;
	ip->ip_sum = htons((uint16_t)~add_words(0, ip, sizeof(*ip)));
	return (ip);
}

struct udphdr *
udp_of(struct ip *ip)
{
	return ((struct udphdr *)(void *)((uint8_t *)ip + ip->ip_hl * 4));
}

struct ip *
udp_packet(struct in_addr src, uint16_t sport, struct in_addr dst,
    uint16_t dport)
{
	struct ip *ip = raw_packet(src, dst, IPPROTO_UDP, UDP_LEN);
	struct udphdr *udp = udp_of(ip);
	size_t len = UDP_LEN - sizeof(*ip), i;
	uint8_t *body = (uint8_t *)udp;

	for (i = sizeof(*udp); i < len; i++)
		body[i] = (uint8_t)draw(256);
	udp->uh_sport = htons(sport);
	udp->uh_dport = htons(dport);
	udp->uh_ulen = htons((uint16_t)len);
	udp->uh_sum = htons((uint16_t)~add_words(pseudo_sum(ip), body, len));
	if (udp->uh_sum == 0)
		udp->uh_sum = 0xffff;
	return (ip);
}

/* Hands a packet in or out. Gives whether it went through; when it did
 * not, it must be as it was. */
static int
hand(int (*way)(struct libalias *, void *, int), struct libalias *la,
    struct ip *ip)
{
	uint8_t before[UDP_LEN];
	int result;

	memcpy(before, ip, UDP_LEN);
	result = way(la, ip, ntohs(ip->ip_len));
	if (result != PKT_ALIAS_OK)
		check(memcmp(before, ip, UDP_LEN) == 0, "refused as it was",
		    here_file, here_line);
	check(sums_are_right(ip), "sums are right", here_file, here_line);
	return (result == PKT_ALIAS_OK);
}

static void
here(int is_true, const char *what)
{
	check(is_true, what, here_file, here_line);
}

uint16_t
out_udp(struct libalias *la, struct in_addr src, uint16_t sport,
    struct in_addr dst, uint16_t dport, struct in_addr want)
{
	struct ip *ip = udp_packet(src, sport, dst, dport);
	uint16_t port;

	here(hand(LibAliasOut, la, ip), "out goes through");
	here(same(ip->ip_src, want), "out: the source is the wanted one");
	here(same(ip->ip_dst, dst), "out: the destination is the same");
	here(ntohs(udp_of(ip)->uh_dport) == dport, "out: so is its port");
	port = ntohs(udp_of(ip)->uh_sport);
	free(ip);
	return (port);
}

void
out_udp_fails(struct libalias *la, struct in_addr src, uint16_t sport,
    struct in_addr dst, uint16_t dport)
{
	struct ip *ip = udp_packet(src, sport, dst, dport);

	here(!hand(LibAliasOut, la, ip), "out is refused");
	free(ip);
}

void
out_raw(struct libalias *la, struct in_addr src, struct in_addr dst,
    struct in_addr want)
{
	struct ip *ip = raw_packet(src, dst, raw_protocol, UDP_LEN);

	here(hand(LibAliasOut, la, ip), "out goes through");
	here(same(ip->ip_src, want), "out: the source is the wanted one");
	here(same(ip->ip_dst, dst), "out: the destination is the same");
	free(ip);
}

void
in_udp(struct libalias *la, struct in_addr src, uint16_t sport,
    struct in_addr dst, uint16_t dport, struct in_addr want,
    uint16_t want_port)
{
	struct ip *ip = udp_packet(src, sport, dst, dport);

	here(hand(LibAliasIn, la, ip), "in goes through");
	here(same(ip->ip_src, src), "in: the source is the same");
	here(ntohs(udp_of(ip)->uh_sport) == sport, "in: so is its port");
	here(same(ip->ip_dst, want), "in: the destination is the wanted one");
	here(ntohs(udp_of(ip)->uh_dport) == want_port, "in: so is its port");
	free(ip);
}

void
in_udp_fails(struct libalias *la, struct in_addr src, uint16_t sport,
    struct in_addr dst, uint16_t dport)
{
	struct ip *ip = udp_packet(src, sport, dst, dport);

	here(!hand(LibAliasIn, la, ip), "in is refused");
	free(ip);
}

void
in_raw(struct libalias *la, struct in_addr src, struct in_addr dst,
    struct in_addr want)
{
	struct ip *ip = raw_packet(src, dst, raw_protocol, UDP_LEN);

	here(hand(LibAliasIn, la, ip), "in goes through");
	here(same(ip->ip_src, src), "in: the source is the same");
	here(same(ip->ip_dst, want), "in: the destination is the wanted one");
	free(ip);
}

void
in_raw_fails(struct libalias *la, struct in_addr src, struct in_addr dst)
{
	struct ip *ip = raw_packet(src, dst, raw_protocol, UDP_LEN);

	here(!hand(LibAliasIn, la, ip), "in is refused");
	free(ip);
}

/* Runs a group; gives how many of its cases failed. */
static int
run(const struct test *tests, int *count)
{
	int failed = 0, before;

	for (; tests->name != NULL; tests++) {
		before = failures;
		tests->run();
		failed += failures > before;
		printf("%s %s\n", failures > before ? "not ok" : "ok",
		    tests->name);
		fflush(stdout);
		++*count;
	}
	return (failed);
}

int
main(void)
{
	const struct test *groups[] = { instance_tests, out_tests, in_tests,
		independent_tests, handle_tests, packet_tests, thread_tests,
		new_tests };
	int count = 0, failed = 0;
	size_t i;

	for (i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		failed += run(groups[i], &count);
	printf("%d cases, %d failed\n", count, failed);
	return (failed > 0);
}
