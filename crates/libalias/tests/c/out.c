/*
 * Outgoing: masquerading, the modes, ports.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "check.h"

static const uint16_t sport = 0x1234, dport = 0x5678;

static struct libalias *
with_modes(unsigned int modes)
{
	struct libalias *la = LibAliasInit(NULL);

	CHECK(la != NULL);
	LibAliasSetAddress(la, masq);
	EQUAL(LibAliasSetMode(la, modes, ~0u), modes);
	return (la);
}

static void
masquerade(void)
{
	struct libalias *la = with_modes(0);

	OUT_RAW(la, prv1, ext, masq);
	OUT_RAW(la, prv2, ext, masq);
	OUT_RAW(la, prv3, ext, masq);
	OUT_RAW(la, cgn, ext, masq);
	OUT_RAW(la, pub, ext, masq);
	LibAliasUninit(la);
}

/* The private ones become masq, the others what is said. A mode counts for
 * new flows: those that are there keep their ways. */
static void
unregistered(unsigned int mode, struct in_addr carrier)
{
	struct libalias *la = with_modes(mode);
	int i;

	for (i = 0; i < 2; i++) {
		OUT_RAW(la, prv1, ext, masq);
		OUT_RAW(la, prv2, ext, masq);
		OUT_RAW(la, prv3, ext, masq);
		OUT_RAW(la, cgn, ext, carrier);
		OUT_RAW(la, pub, ext, pub);
		EQUAL(LibAliasSetMode(la, 0, mode), 0);
	}
	LibAliasUninit(la);
}

static void
unregistered_only(void)
{
	unregistered(PKT_ALIAS_UNREGISTERED_ONLY, cgn);
}

static void
carrier_grade(void)
{
	unregistered(PKT_ALIAS_UNREGISTERED_CGN, masq);
}

static void
udp(void)
{
	struct libalias *la = with_modes(0);
	uint16_t first, second;

	first = OUT_UDP(la, prv1, sport, ext, dport, masq);
	CHECK(first != sport);
	IN_UDP(la, ext, dport, masq, first, prv1, sport);
	second = OUT_UDP(la, prv2, sport, ext, dport, masq);
	CHECK(second != first);
	IN_UDP(la, ext, dport, masq, second, prv2, sport);
	IN_UDP(la, ext, dport, masq, first, prv1, sport);
	LibAliasUninit(la);
}

static void
same_ports(void)
{
	struct libalias *la = with_modes(PKT_ALIAS_SAME_PORTS);

	EQUAL(OUT_UDP(la, prv1, sport, ext, dport, masq), sport);
	CHECK(OUT_UDP(la, prv2, sport, ext, dport, masq) != sport);
	LibAliasUninit(la);
}

static void
clearing(void)
{
	struct libalias *la = with_modes(PKT_ALIAS_RESET_ON_ADDR_CHANGE |
	    PKT_ALIAS_SAME_PORTS | PKT_ALIAS_DENY_INCOMING);

	EQUAL(OUT_UDP(la, prv1, sport, ext, dport, masq), sport);
	IN_UDP(la, ext, dport, masq, sport, prv1, sport);
	/* The address that it is already changes nothing. */
	LibAliasSetAddress(la, masq);
	IN_UDP(la, ext, dport, masq, sport, prv1, sport);
	LibAliasSetAddress(la, ext);
	LibAliasSetAddress(la, masq);
	IN_UDP_FAILS(la, ext, dport, masq, sport);
	EQUAL(OUT_UDP(la, prv2, sport, ext, dport, masq), sport);
	IN_UDP(la, ext, dport, masq, sport, prv2, sport);
	LibAliasUninit(la);
}

struct flow {
	struct in_addr src, dst;
	uint16_t sport, dport, alias;
};

static struct flow
draw_flow(int which)
{
	const struct in_addr inside[] = { prv1, prv2, prv3, cgn };
	const struct in_addr outside[] = { ext, pub };
	const uint32_t net = htonl(0xffff0000);
	struct flow flow;

	flow.src.s_addr = (inside[which % 4].s_addr & net) | htonl(draw(65535));
	flow.dst.s_addr = (outside[which % 2].s_addr & net) | htonl(draw(65535));
	flow.sport = (uint16_t)(1000 + draw(59000));
	flow.dport = (uint16_t)(1000 + draw(59000));
	return (flow);
}

static void
stress(void)
{
	enum { ROUNDS = 25, FLOWS = 1200 };
	struct libalias *la = LibAliasInit(NULL);
	struct flow *flows = calloc(FLOWS, sizeof(*flows)), swap;
	uint32_t round, i, j;

	if (flows == NULL)
		abort();
	LibAliasSetAddress(la, masq);
	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < FLOWS; i++) {
			flows[i] = draw_flow((int)i);
			flows[i].alias = OUT_UDP(la, flows[i].src,
			    flows[i].sport, flows[i].dst, flows[i].dport, masq);
		}
		for (i = FLOWS - 1; i > 0; i--) {
			j = draw(i + 1);
			swap = flows[i];
			flows[i] = flows[j];
			flows[j] = swap;
		}
		for (i = 0; i < FLOWS; i++)
			IN_UDP(la, flows[i].dst, flows[i].dport, masq,
			    flows[i].alias, flows[i].src, flows[i].sport);
	}
	free(flows);
	LibAliasUninit(la);
}

static void
port_range(void)
{
	struct libalias *la = with_modes(0);
	uint16_t port, first;

	LibAliasSetAliasPortRange(la, 0, 0);
	CHECK(OUT_UDP(la, prv1, sport, ext, dport, masq) >= 0x8000);

	LibAliasSetAliasPortRange(la, 2000, 3000);
	port = OUT_UDP(la, prv1, sport, ext, dport + 1, masq);
	CHECK(port >= 2000 && port <= 3000);

	/* Two ports: two flows to one destination, and no third. */
	LibAliasSetAliasPortRange(la, 4000, 4001);
	first = OUT_UDP(la, prv1, sport, ext, dport + 2, masq);
	CHECK(first == 4000 || first == 4001);
	port = OUT_UDP(la, prv1, sport + 1, ext, dport + 2, masq);
	EQUAL(port, 8001 - first);
	OUT_UDP_FAILS(la, prv1, sport + 2, ext, dport + 2);
	/* But one to another. */
	port = OUT_UDP(la, prv1, sport + 2, ext, dport + 3, masq);
	CHECK(port == 4000 || port == 4001);

	/* A range of nothing changes nothing. */
	LibAliasSetAliasPortRange(la, 5000, 4999);
	OUT_UDP_FAILS(la, prv1, sport + 3, ext, dport + 2);

	LibAliasSetAliasPortRange(la, 0, 0);
	CHECK(OUT_UDP(la, prv1, sport, ext, dport + 4, masq) >= 0x8000);
	LibAliasUninit(la);
}

const struct test out_tests[] = {
	{ "out: simple masquerading", masquerade },
	{ "out: unregistered addresses only", unregistered_only },
	{ "out: carrier-grade addresses", carrier_grade },
	{ "out: UDP", udp },
	{ "out: same port", same_ports },
	{ "out: clearing the table", clearing },
	{ "out: stress", stress },
	{ "out: port range", port_range },
	{ NULL, NULL },
};
