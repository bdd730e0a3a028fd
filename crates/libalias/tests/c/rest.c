/*
 * The rest of the interface, and what FreeBSD's libalias does not have.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "check.h"

#include <alias_mod.h>
#include <errno.h>
#include <netinet/tcp.h>

static struct libalias *
denying(void)
{
	struct libalias *la = LibAliasInit(NULL);

	LibAliasSetAddress(la, masq);
	LibAliasSetMode(la, PKT_ALIAS_DENY_INCOMING, PKT_ALIAS_DENY_INCOMING);
	return (la);
}

static void
modes(void)
{
	struct libalias *la = LibAliasInit(NULL);

	EQUAL(LibAliasSetMode(la, 0, 0), PKT_ALIAS_SAME_PORTS |
	    PKT_ALIAS_USE_SOCKETS | PKT_ALIAS_RESET_ON_ADDR_CHANGE);
	EQUAL(LibAliasSetMode(la, PKT_ALIAS_LOG | PKT_ALIAS_PUNCH_FW,
	    PKT_ALIAS_LOG | PKT_ALIAS_SAME_PORTS), PKT_ALIAS_LOG |
	    PKT_ALIAS_USE_SOCKETS | PKT_ALIAS_RESET_ON_ADDR_CHANGE);
	/* Without an alias address, packets keep their own. */
	OUT_RAW(la, prv1, ext, prv1);
	LibAliasUninit(la);
}

static void
reverse(void)
{
	struct libalias *la = LibAliasInit(NULL);
	struct ip *ip = udp_packet(prv1, 1000, ext, 53);

	LibAliasSetAddress(la, masq);
	LibAliasSetMode(la, PKT_ALIAS_REVERSE, PKT_ALIAS_REVERSE);
	EQUAL(LibAliasIn(la, ip, UDP_LEN), PKT_ALIAS_OK);
	CHECK(same(ip->ip_src, masq) && sums_are_right(ip));
	ip->ip_dst = ip->ip_src;
	ip->ip_src = ext;
	udp_of(ip)->uh_dport = udp_of(ip)->uh_sport;
	udp_of(ip)->uh_sport = htons(53);
	EQUAL(LibAliasOut(la, ip, UDP_LEN), PKT_ALIAS_OK);
	CHECK(same(ip->ip_dst, prv1));
	free(ip);
	LibAliasUninit(la);
}

static void
target(void)
{
	struct libalias *la = LibAliasInit(NULL);
	struct in_addr none = { INADDR_NONE };

	LibAliasSetAddress(la, masq);
	IN_UDP(la, ext, 1, masq, 80, masq, 80);
	LibAliasSetTarget(la, prv1);
	IN_UDP(la, ext, 2, masq, 80, prv1, 80);
	LibAliasSetTarget(la, none);
	IN_UDP(la, ext, 3, masq, 80, masq, 80);
	LibAliasSetTarget(la, any);
	IN_UDP(la, ext, 4, masq, 80, masq, 80);
	LibAliasUninit(la);
}

static void
only_what_is_there(void)
{
	struct libalias *la = denying();
	struct ip *ip = udp_packet(prv1, 1000, ext, 53);
	uint8_t before[UDP_LEN];

	memcpy(before, ip, UDP_LEN);
	EQUAL(LibAliasOutTry(la, ip, UDP_LEN, 0), PKT_ALIAS_IGNORED);
	CHECK(memcmp(before, ip, UDP_LEN) == 0);
	EQUAL(LibAliasCheckNewLink(la), 0);
	EQUAL(LibAliasOutTry(la, ip, UDP_LEN, 1), PKT_ALIAS_OK);
	CHECK(same(ip->ip_src, masq));
	CHECK(LibAliasCheckNewLink(la) != 0);
	EQUAL(LibAliasCheckNewLink(la), 0);
	memcpy(ip, before, UDP_LEN);
	EQUAL(LibAliasOutTry(la, ip, UDP_LEN, 0), PKT_ALIAS_OK);
	CHECK(same(ip->ip_src, masq));

	/* And back to what it was inside. */
	EQUAL(LibAliasUnaliasOut(la, ip, UDP_LEN), PKT_ALIAS_OK);
	CHECK(memcmp(before, ip, UDP_LEN) == 0);
	CHECK(LibAliasUnaliasOut(la, ip, UDP_LEN) != PKT_ALIAS_OK);
	free(ip);
	LibAliasUninit(la);
}

static void
protocols(void)
{
	struct libalias *la = denying();
	struct alias_link *link;

	raw_protocol = 50;
	IN_RAW_FAILS(la, ext, masq);
	link = LibAliasRedirectProto(la, prv1, ext, masq, 50);
	CHECK(link != NULL);
	IN_RAW(la, ext, masq, prv1);
	IN_RAW_FAILS(la, pub, masq);
	LibAliasRedirectDelete(la, link);
	raw_protocol = 254;
	CHECK(LibAliasRedirectPort(la, prv1, htons(1), any, 0, any, htons(2),
	    IPPROTO_ICMP) == NULL);
	LibAliasUninit(la);
}

static void
proxies(void)
{
	struct libalias *la = denying();
	struct ip *ip = udp_packet(prv1, 1000, ext, 5353);

	EQUAL(LibAliasProxyRule(la,
	    "port 5353 server 10.0.0.1:99 proto udp rule 7"), 0);
	EQUAL(LibAliasProxyRule(la, "port 5353"), -1);
	EQUAL(LibAliasProxyRule(la, "server www.example.org"), -1);
	EQUAL(LibAliasProxyRule(la, ""), -1);
	EQUAL(LibAliasProxyRule(la, NULL), -1);
	EQUAL(LibAliasOut(la, ip, UDP_LEN), PKT_ALIAS_OK);
	CHECK(same(ip->ip_dst, addr("10.0.0.1")) && sums_are_right(ip));
	EQUAL(ntohs(udp_of(ip)->uh_dport), 99);
	EQUAL(LibAliasProxyRule(la, "delete 7"), 0);
	EQUAL(LibAliasProxyRule(la, "delete 7"), -1);
	free(ip);
	LibAliasUninit(la);
}

/* The middle or the end of a packet whose first part is `first`. */
static struct ip *
later_part(const struct ip *first, struct in_addr dst, uint16_t offset)
{
	struct ip *ip = raw_packet(first->ip_src, dst, IPPROTO_UDP, UDP_LEN);

	ip->ip_id = first->ip_id;
	ip->ip_off = htons(offset);
	ip->ip_sum = 0;
	ip->ip_sum = LibAliasInternetChecksum(NULL,
	    (unsigned short *)(void *)ip, 20);
	return (ip);
}

static void
fragments(void)
{
	struct libalias *la = denying();
	uint16_t port = OUT_UDP(la, prv1, 1000, ext, 53, masq);
	struct ip *first = udp_packet(ext, 53, masq, port), *later, *other;

	first->ip_off = htons(IP_MF);
	first->ip_sum = 0;
	first->ip_sum = LibAliasInternetChecksum(la,
	    (unsigned short *)(void *)first, 20);
	CHECK(LibAliasGetFragment(la, first) == NULL);

	/* One comes too early, and waits for the first. */
	later = later_part(first, masq, 6);
	EQUAL(LibAliasIn(la, later, UDP_LEN), PKT_ALIAS_UNRESOLVED_FRAGMENT);
	EQUAL(LibAliasSaveFragment(la, later), PKT_ALIAS_OK);
	EQUAL(LibAliasIn(la, first, UDP_LEN), PKT_ALIAS_FOUND_HEADER_FRAGMENT);
	CHECK(same(first->ip_dst, prv1));
	EQUAL(ntohs(udp_of(first)->uh_dport), 1000);
	CHECK(LibAliasGetFragment(la, first) == later);
	CHECK(LibAliasGetFragment(la, first) == NULL);
	LibAliasFragmentIn(la, first, later);
	CHECK(same(later->ip_dst, prv1));
	EQUAL(LibAliasInternetChecksum(la, (unsigned short *)(void *)later,
	    20), 0);

	/* One that comes after it finds its way by itself. */
	other = later_part(first, masq, 12);
	EQUAL(LibAliasIn(la, other, UDP_LEN), PKT_ALIAS_OK);
	CHECK(same(other->ip_dst, prv1));
	free(other);

	/* One that nobody fetches goes with the instance. */
	other = later_part(first, masq, 18);
	EQUAL(LibAliasSaveFragment(la, other), PKT_ALIAS_OK);
	EQUAL(LibAliasSaveFragment(la, NULL), PKT_ALIAS_ERROR);
	free(later);
	free(first);
	LibAliasUninit(la);
}

/* What a datagram of SIP's, or of any other port, becomes. */
static int
says(struct libalias *la, uint16_t port, const char *data, char *after)
{
	size_t len = strlen(data);
	struct ip *ip = raw_packet(prv1, ext, IPPROTO_UDP, 1024);
	struct udphdr *udp = udp_of(ip);
	int result;

	memset(udp, 0, sizeof(*udp));
	udp->uh_sport = udp->uh_dport = htons(port);
	udp->uh_ulen = htons((uint16_t)(8 + len));
	memcpy(udp + 1, data, len);
	ip->ip_len = htons((uint16_t)(28 + len));
	ip->ip_sum = 0;
	ip->ip_sum = LibAliasInternetChecksum(la,
	    (unsigned short *)(void *)ip, 20);
	result = LibAliasOut(la, ip, 1024);
	len = (size_t)ntohs(ip->ip_len) - 28;
	memcpy(after, udp + 1, len);
	after[len] = 0;
	free(ip);
	return (result);
}

static void
modules(void)
{
	static const char options[] =
	    "OPTIONS sip:a SIP/2.0\r\nVia: SIP/2.0/UDP 10.0.222.173:5060\r\n\r\n";
	char ftp[] = "/lib/libalias_ftp.so", none[] = "/lib/libalias_none.so";
	char sip[] = "sip", after[1024];
	struct libalias *la = denying(), *later;

	EQUAL(LibAliasLoadModule(ftp), 0);
	EQUAL(LibAliasLoadModule(none), ENOENT);
	EQUAL(LibAliasLoadModule(NULL), ENOENT);
	EQUAL(LibAliasUnLoadModule(none), ENOENT);
	EQUAL(says(la, 5060, options, after), PKT_ALIAS_OK);
	CHECK(strcmp(after, options) == 0);
	/* New links of all instances, made before or after. */
	EQUAL(LibAliasLoadModule(sip), 0);
	later = denying();
	EQUAL(says(later, 5060, options, after), PKT_ALIAS_OK);
	CHECK(strstr(after, "UDP 1.2.3.4") != NULL);
	LibAliasUninit(la);
	la = denying();
	EQUAL(LibAliasUnLoadModule(sip), 0);
	EQUAL(says(la, 5060, options, after), PKT_ALIAS_OK);
	CHECK(strcmp(after, options) == 0);
	EQUAL(LibAliasUnLoadAllModule(), 0);
	EQUAL(LibAliasRefreshModules(), 0);
	LibAliasUninit(later);
	LibAliasUninit(la);
}

/* A phone that registers with a call manager at this port; its own address
 * as the call manager has it then. */
static struct in_addr
registered(struct libalias *la, uint16_t port)
{
	struct ip *ip = raw_packet(prv1, ext, IPPROTO_TCP, 20 + 20 + 48);
	struct tcphdr *tcp = (struct tcphdr *)(void *)((char *)ip + 20);
	unsigned char *data = (unsigned char *)(tcp + 1);
	struct in_addr seen;

	memset(tcp, 0, 20 + 48);
	tcp->th_sport = htons(3000);
	tcp->th_dport = htons(port);
	tcp->th_seq = htonl(1000);
	tcp->th_off = 5;
	tcp->th_flags = TH_ACK;
	data[0] = 40;
	data[8] = 1;
	memcpy(data + 36, &prv1, 4);
	EQUAL(LibAliasOut(la, ip, 20 + 20 + 48), PKT_ALIAS_OK);
	memcpy(&seen, data + 36, 4);
	free(ip);
	return (seen);
}

static void
skinny(void)
{
	struct libalias *la = denying();

	CHECK(same(registered(la, 2000), prv1));
	LibAliasSetSkinnyPort(la, 2000);
	LibAliasSetSkinnyPort(la, 70000);
	LibAliasUninit(la);
	la = denying();
	LibAliasSetSkinnyPort(la, 2443);
	CHECK(same(registered(la, 2443), masq));
	CHECK(same(registered(la, 2000), prv1));
	LibAliasUninit(la);
}

/* ---- handlers of one's own ---- */

static int seen_in, seen_out, answer;

static int
knows(struct libalias *la, struct alias_data *data)
{
	(void)la;
	return (data->lnk != NULL && data->dport != NULL &&
	    (ntohs(*data->dport) == 4444 || ntohs(*data->sport) == 4444) ?
	    0 : -1);
}

static int
outward(struct libalias *la, struct ip *ip, struct alias_data *data)
{
	CHECK(same(ip->ip_src, prv1) && same(*data->aaddr, masq));
	CHECK(data->oaddr == NULL && data->maxpktsize == 0);
	EQUAL(ntohs(*data->sport), 1000);
	CHECK(*data->aport != 0);
	/* Calls on the instance do not wait for it. */
	LibAliasSetTarget(la, any);
	((uint8_t *)udp_of(ip))[8] ^= 0xff;
	udp_of(ip)->uh_sum = 0;
	seen_out++;
	return (0);
}

static int
inward(struct libalias *la, struct ip *ip, struct alias_data *data)
{
	(void)la;
	CHECK(same(ip->ip_dst, masq) && same(*data->aaddr, masq));
	CHECK(same(*data->oaddr, prv1));
	EQUAL(ntohs(*data->dport), 1000);
	seen_in++;
	return (answer);
}

static struct proto_handler mine[] = {
	{ .pri = 7, .dir = OUT, .proto = UDP, .fingerprint = knows,
	    .protohandler = outward },
	{ .pri = 7, .dir = IN, .proto = UDP, .fingerprint = knows,
	    .protohandler = inward },
	{ .pri = (u_int)EOH },
};

static void
attach(void)
{
	struct proto_handler twice[] = { mine[0], mine[2] };
	struct proto_handler broken[] = { { .pri = 9, .proto = UDP },
	    mine[2] };

	EQUAL(LibAliasAttachHandlers(NULL), EINVAL);
	EQUAL(LibAliasAttachHandlers(&mine[2]), -1);
	EQUAL(LibAliasDetachHandlers(&mine[2]), -1);
	EQUAL(LibAliasAttachHandlers(broken), EINVAL);
	EQUAL(LibAliasDetachHandlers(mine), ENOENT);
	EQUAL(LibAliasAttachHandlers(mine), 0);
	EQUAL(LibAliasAttachHandlers(mine), EEXIST);
	EQUAL(LibAliasAttachHandlers(twice), EEXIST);
	EQUAL(LibAliasDetachHandlers(twice), ENOENT);
}

static void
handlers(void)
{
	struct libalias *la = denying();
	struct ip *ip = udp_packet(prv1, 1000, ext, 4444);
	struct libalias_packet batch[] = { { ip, UDP_LEN, 0 } };
	uint8_t first = ((uint8_t *)udp_of(ip))[8];
	uint16_t port;

	attach();
	seen_in = seen_out = answer = 0;
	EQUAL(LibAliasOut(la, ip, UDP_LEN), PKT_ALIAS_OK);
	EQUAL(seen_out, 1);
	CHECK(same(ip->ip_src, masq));
	EQUAL(((uint8_t *)udp_of(ip))[8], first ^ 0xff);
	port = ntohs(udp_of(ip)->uh_sport);
	IN_UDP(la, ext, 4444, masq, port, prv1, 1000);
	EQUAL(seen_in, 1);
	answer = -1;
	IN_UDP_FAILS(la, ext, 4444, masq, port);
	/* Refused packets, other ports and a denied one are not seen. */
	IN_UDP_FAILS(la, pub, 4444, masq, port);
	OUT_UDP(la, prv2, 1000, ext, 4445, masq);
	EQUAL(seen_in, 2);
	EQUAL(seen_out, 1);
	ip->ip_src = prv1;
	udp_of(ip)->uh_sport = htons(1000);
	ip->ip_sum = 0;
	ip->ip_sum = LibAliasInternetChecksum(la,
	    (unsigned short *)(void *)ip, 20);
	EQUAL(LibAliasOutBatch(la, batch, 1), 1);
	EQUAL(seen_out, 2);
	EQUAL(LibAliasDetachHandlers(mine), 0);
	answer = 0;
	IN_UDP(la, ext, 4444, masq, port, prv1, 1000);
	EQUAL(seen_in, 2);
	free(ip);
	LibAliasUninit(la);
}

/* The clock is the caller's: a flow ends in its time, at no packets at all,
 * and one that is used goes on. */
static void
own_time(void)
{
	struct libalias *la = denying();
	uint64_t now = 1000000, step;
	uint16_t port, used;

	LibAliasSetTime(la, now);
	port = OUT_UDP(la, prv1, 1000, ext, 5300, masq);
	used = OUT_UDP(la, prv2, 1001, ext, 53, masq);
	IN_UDP(la, ext, 5300, masq, port, prv1, 1000);
	for (step = 0; step < 10; step++) {
		now += 60 * 1000;
		LibAliasSetTime(la, now);
		OUT_UDP(la, prv2, 1001, ext, 53, masq);
	}
	IN_UDP_FAILS(la, ext, 53, masq, port);
	IN_UDP(la, ext, 53, masq, used, prv2, 1001);

	/* The shared time is for those without their own. */
	LibAliasShareTime(now + 3600 * 1000);
	IN_UDP(la, ext, 53, masq, used, prv2, 1001);
	LibAliasSetTime(la, LIBALIAS_TIME_CLOCK);
	IN_UDP_FAILS(la, ext, 53, masq, used);
	LibAliasShareTime(LIBALIAS_TIME_CLOCK);
	LibAliasUninit(la);
}

static void
timeouts(void)
{
	struct libalias *la = denying();
	uint16_t port;

	EQUAL(LibAliasSetTimeout(la, LIBALIAS_TIMEOUT_UDP, 10), 0);
	EQUAL(LibAliasSetTimeout(la, LIBALIAS_TIMEOUT_DNS + 1, 10), -1);
	EQUAL(LibAliasSetTimeout(la, -1, 10), -1);
	EQUAL(LibAliasSetTimeout(la, LIBALIAS_TIMEOUT_UDP, 0), -1);
	LibAliasSetTime(la, 0);
	port = OUT_UDP(la, prv1, 1000, ext, 5300, masq);
	IN_UDP(la, ext, 5300, masq, port, prv1, 1000);
	LibAliasSetTime(la, 10 * 1000);
	IN_UDP(la, ext, 5300, masq, port, prv1, 1000);
	LibAliasSetTime(la, 21 * 1000);
	IN_UDP_FAILS(la, ext, 5300, masq, port);
	LibAliasUninit(la);
}

static void
maintained(void)
{
	struct libalias *la = denying();
	int i, freed = 0;

	LibAliasSetTime(la, 0);
	for (i = 0; i < 500; i++)
		OUT_UDP(la, prv1, (uint16_t)(1000 + i), ext, 53, masq);
	LibAliasSetTime(la, 3600 * 1000);
	for (i = 0; i < 100; i++)
		freed += LibAliasMaintain(la, 1000);
	EQUAL(freed, 500);
	EQUAL(LibAliasMaintain(la, -1), PKT_ALIAS_ERROR);
	LibAliasUninit(la);
}

static void
batches(void)
{
	enum { COUNT = 150 };
	struct libalias *la = denying();
	struct libalias_packet batch[COUNT];
	struct ip *ip;
	uint16_t port;
	int i;

	for (i = 0; i < COUNT; i++) {
		ip = udp_packet(prv1, (uint16_t)(1000 + i), ext, 53);
		batch[i] = (struct libalias_packet){ ip, UDP_LEN, 0 };
	}
	batch[70].maxpacketsize = 10;
	free(batch[71].packet);
	batch[71].packet = NULL;
	EQUAL(LibAliasOutBatch(la, batch, COUNT), COUNT - 2);
	EQUAL(LibAliasOutBatch(la, batch, 0), 0);
	EQUAL(LibAliasOutBatch(la, batch, -1), PKT_ALIAS_ERROR);
	EQUAL(LibAliasOutBatch(la, NULL, 1), PKT_ALIAS_ERROR);
	for (i = 0; i < COUNT; i++) {
		ip = batch[i].packet;
		if (i == 70 || i == 71) {
			CHECK(batch[i].result != PKT_ALIAS_OK);
			continue;
		}
		EQUAL(batch[i].result, PKT_ALIAS_OK);
		CHECK(same(ip->ip_src, masq) && sums_are_right(ip));
		port = ntohs(udp_of(ip)->uh_sport);
		free(ip);
		batch[i].packet = udp_packet(ext, 53, masq, port);
	}
	EQUAL(LibAliasInBatch(la, batch, COUNT), COUNT - 2);
	for (i = 0; i < COUNT; i++) {
		ip = batch[i].packet;
		if (batch[i].result == PKT_ALIAS_OK) {
			CHECK(same(ip->ip_dst, prv1) && sums_are_right(ip));
			EQUAL(ntohs(udp_of(ip)->uh_dport), 1000 + i);
		}
		free(ip);
	}
	LibAliasUninit(la);
}

/* At its limit an instance refuses what is new; what is there goes on. */
static void
limited(void)
{
	struct libalias *la = LibAliasInitSized(NULL, 100);
	int i;

	CHECK(la != NULL);
	LibAliasSetAddress(la, masq);
	for (i = 0; i < 100; i++)
		OUT_UDP(la, prv1, (uint16_t)(1000 + i), ext, 53, masq);
	OUT_UDP_FAILS(la, prv1, 999, ext, 53);
	for (i = 0; i < 100; i++)
		IN_UDP(la, ext, 53, masq, (uint16_t)(1000 + i), prv1,
		    (uint16_t)(1000 + i));
	CHECK(LibAliasInitSized(la, 0) == la);
	LibAliasUninit(la);
}

const struct test new_tests[] = {
	{ "rest: modes", modes },
	{ "rest: reverse", reverse },
	{ "rest: target", target },
	{ "rest: OutTry, UnaliasOut, CheckNewLink", only_what_is_there },
	{ "rest: redirect of a protocol", protocols },
	{ "rest: proxy rules", proxies },
	{ "rest: fragments", fragments },
	{ "rest: modules", modules },
	{ "rest: a port for Skinny", skinny },
	{ "rest: handlers of one's own", handlers },
	{ "new: a time of one's own", own_time },
	{ "new: timeouts", timeouts },
	{ "new: maintenance", maintained },
	{ "new: batches", batches },
	{ "new: a limit of one's own", limited },
	{ NULL, NULL },
};
