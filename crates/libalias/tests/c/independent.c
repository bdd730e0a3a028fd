/*
 * UDP with endpoint-independent mapping.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "check.h"

static const uint16_t sport = 0x1234, dport = 0x5678, dport2 = 0x6789;

static struct libalias *
independent(unsigned int more)
{
	struct libalias *la = LibAliasInit(NULL);

	LibAliasSetAddress(la, masq);
	LibAliasSetMode(la, PKT_ALIAS_UDP_EIM | more, ~0u);
	return (la);
}

static void
mapping(void)
{
	struct libalias *la = independent(0);
	uint16_t port = OUT_UDP(la, prv1, sport, ext, dport, masq);

	EQUAL(OUT_UDP(la, prv1, sport, ext, dport2, masq), port);
	EQUAL(OUT_UDP(la, prv1, sport, pub, dport, masq), port);
	CHECK(OUT_UDP(la, prv2, sport, pub, dport, masq) != port);
	LibAliasUninit(la);
}

static void
anyone_gets_in(void)
{
	struct libalias *la = independent(0);
	uint16_t port = OUT_UDP(la, prv1, sport, pub, dport, masq);

	IN_UDP(la, pub, dport2, masq, port, prv1, sport);
	IN_UDP(la, pub2, dport2, masq, port, prv1, sport);
	LibAliasUninit(la);
}

static void
only_the_remote_gets_in(void)
{
	struct libalias *la = independent(PKT_ALIAS_DENY_INCOMING);
	uint16_t port = OUT_UDP(la, prv1, sport, pub, dport, masq);
	struct ip *ip = udp_packet(pub, dport2, masq, port);

	IN_UDP(la, pub, dport, masq, port, prv1, sport);
	EQUAL(LibAliasIn(la, ip, UDP_LEN), PKT_ALIAS_IGNORED);
	IN_UDP_FAILS(la, pub2, dport, masq, port);
	IN_UDP_FAILS(la, pub2, dport2, masq, port);
	free(ip);
	LibAliasUninit(la);
}

static void
hairpin(void)
{
	struct libalias *la = independent(0);
	uint16_t first = OUT_UDP(la, prv1, sport, pub, dport, masq);
	uint16_t second = OUT_UDP(la, prv2, 0x2345, pub, dport, masq);

	EQUAL(OUT_UDP(la, prv1, sport, masq, second, masq), first);
	IN_UDP(la, masq, first, masq, second, prv2, 0x2345);
	/* And the way back. */
	EQUAL(OUT_UDP(la, prv2, 0x2345, masq, first, masq), second);
	IN_UDP(la, masq, second, masq, first, prv1, sport);
	LibAliasUninit(la);
}

const struct test independent_tests[] = {
	{ "independent: one alias port for all remotes", mapping },
	{ "independent: anyone gets in", anyone_gets_in },
	{ "independent: with deny only the remote gets in",
	    only_the_remote_gets_in },
	{ "independent: hairpin", hairpin },
	{ NULL, NULL },
};
