/*
 * Incoming: redirects of ports, of addresses, to pools, once.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "check.h"

static const uint16_t alias_port = 0xabcd, local_port = 0x1234,
    remote_port = 0x5678;

static struct libalias *
denying(void)
{
	struct libalias *la = LibAliasInit(NULL);

	CHECK(la != NULL);
	LibAliasSetAddress(la, masq);
	LibAliasSetMode(la, PKT_ALIAS_RESET_ON_ADDR_CHANGE |
	    PKT_ALIAS_DENY_INCOMING, ~0u);
	return (la);
}

/* A redirect of UDP at masq's port; a remote port of 0 is any. */
static struct alias_link *
redirect(struct libalias *la, struct in_addr local, struct in_addr remote,
    uint16_t port, struct in_addr alias)
{
	struct alias_link *link = LibAliasRedirectPort(la, local,
	    htons(local_port), remote, htons(port), alias, htons(alias_port),
	    IPPROTO_UDP);

	CHECK(link != NULL);
	return (link);
}

/* There and back again: flows go, redirects stay. */
static void
change_address(struct libalias *la)
{
	LibAliasSetAddress(la, pub);
	LibAliasSetAddress(la, masq);
}

static void
port_forward(void)
{
	const struct { struct in_addr remote; uint16_t port; } shapes[] = {
		{ ext, remote_port }, { ext, 0 }, { any, remote_port },
		{ any, 0 },
	};
	struct libalias *la = denying();
	struct alias_link *link;
	int is_any_port, is_any_remote;
	size_t i;

	IN_UDP_FAILS(la, ext, remote_port, masq, alias_port);
	for (i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		is_any_remote = shapes[i].remote.s_addr == INADDR_ANY;
		is_any_port = shapes[i].port == 0;
		link = redirect(la, prv1, shapes[i].remote, shapes[i].port,
		    masq);
		IN_UDP(la, ext, remote_port, masq, alias_port, prv1,
		    local_port);
		IN_UDP(la, ext, remote_port, masq, alias_port, prv1,
		    local_port);
		if (is_any_port)
			IN_UDP(la, ext, remote_port + 1, masq, alias_port,
			    prv1, local_port);
		else
			IN_UDP_FAILS(la, ext, remote_port + 1, masq,
			    alias_port);
		if (is_any_remote)
			IN_UDP(la, pub, remote_port, masq, alias_port, prv1,
			    local_port);
		else
			IN_UDP_FAILS(la, pub, remote_port, masq, alias_port);
		IN_UDP_FAILS(la, ext, remote_port, masq, alias_port + 1);
		/* What answers comes from where it was sent to. */
		EQUAL(OUT_UDP(la, prv1, local_port, ext, remote_port, masq),
		    alias_port);
		change_address(la);
		LibAliasRedirectDelete(la, link);
		IN_UDP_FAILS(la, ext, remote_port, masq, alias_port);
	}
	LibAliasUninit(la);
}

static void
overlap(void)
{
	struct libalias *la = denying();
	struct alias_link *equal_link, *wild, *by_port, *by_addr, *exact;

	/* The later of equals, and the earlier again without it. */
	wild = redirect(la, prv1, any, 0, masq);
	equal_link = redirect(la, prv2, any, 0, masq);
	IN_UDP(la, ext, remote_port, masq, alias_port, prv2, local_port);
	change_address(la);
	LibAliasRedirectDelete(la, equal_link);
	IN_UDP(la, ext, remote_port, masq, alias_port, prv1, local_port);
	change_address(la);

	/* The more is said of the remote, the better. */
	exact = redirect(la, cgn, ext, remote_port, masq);
	by_addr = redirect(la, prv3, ext, 0, masq);
	by_port = redirect(la, prv2, any, remote_port, masq);
	IN_UDP(la, ext, remote_port, masq, alias_port, cgn, local_port);
	IN_UDP(la, ext, remote_port + 1, masq, alias_port, prv3, local_port);
	IN_UDP(la, pub, remote_port, masq, alias_port, prv2, local_port);
	IN_UDP(la, pub, remote_port + 1, masq, alias_port, prv1, local_port);
	change_address(la);
	LibAliasRedirectDelete(la, exact);
	IN_UDP(la, ext, remote_port, masq, alias_port, prv3, local_port);
	change_address(la);
	LibAliasRedirectDelete(la, by_addr);
	IN_UDP(la, ext, remote_port, masq, alias_port, prv2, local_port);
	change_address(la);
	LibAliasRedirectDelete(la, by_port);
	IN_UDP(la, ext, remote_port, masq, alias_port, prv1, local_port);
	change_address(la);
	LibAliasRedirectDelete(la, wild);
	IN_UDP_FAILS(la, ext, remote_port, masq, alias_port);
	LibAliasUninit(la);
}

/* A redirect of no given alias address follows the one that is set. */
static void
any_alias(void)
{
	struct libalias *la = denying();
	struct alias_link *link = redirect(la, prv1, any, 0, any);

	IN_UDP(la, ext, remote_port, masq, alias_port, prv1, local_port);
	IN_UDP_FAILS(la, ext, remote_port, pub, alias_port);
	LibAliasSetAddress(la, pub);
	IN_UDP(la, ext, remote_port, pub, alias_port, prv1, local_port);
	IN_UDP_FAILS(la, ext, remote_port, masq, alias_port);
	LibAliasSetAddress(la, masq);
	IN_UDP(la, ext, remote_port, masq, alias_port, prv1, local_port);
	change_address(la);
	LibAliasRedirectDelete(la, link);
	IN_UDP_FAILS(la, ext, remote_port, masq, alias_port);
	LibAliasUninit(la);
}

/* Of a whole address, all protocols; each step with one of its own, so that
 * its flows are new. */
static void
address(void)
{
	struct libalias *la = LibAliasInit(NULL);
	struct alias_link *first, *second;

	LibAliasSetAddress(la, masq);
	raw_protocol = 254;
	first = LibAliasRedirectAddr(la, prv1, pub);
	CHECK(first != NULL);
	IN_RAW(la, ext, pub, prv1);
	IN_RAW(la, ext, masq, masq);

	/* A later one takes what is new; what there was stays. */
	second = LibAliasRedirectAddr(la, prv2, pub);
	CHECK(second != NULL);
	IN_RAW(la, ext, pub, prv1);
	raw_protocol--;
	IN_RAW(la, ext, pub, prv2);
	IN_RAW(la, ext, masq, masq);
	raw_protocol--;
	OUT_RAW(la, prv1, ext, pub);
	OUT_RAW(la, prv2, ext, pub);
	OUT_RAW(la, prv3, ext, masq);

	/* A whole address is not open to what is new when that is denied. */
	LibAliasSetMode(la, PKT_ALIAS_DENY_INCOMING, ~0u);
	raw_protocol--;
	IN_RAW_FAILS(la, ext, pub);
	IN_RAW_FAILS(la, ext, masq);

	/* Without the later one it is as before it. */
	LibAliasRedirectDelete(la, second);
	LibAliasSetMode(la, 0, ~0u);
	raw_protocol--;
	IN_RAW(la, ext, pub, prv1);
	raw_protocol--;
	OUT_RAW(la, prv1, ext, pub);
	OUT_RAW(la, prv2, ext, masq);
	OUT_RAW(la, prv3, ext, masq);
	LibAliasRedirectDelete(la, first);
	raw_protocol--;
	IN_RAW(la, ext, pub, pub);
	OUT_RAW(la, prv1, ext, masq);
	raw_protocol = 254;
	LibAliasUninit(la);
}

/* Servers take turns, the latest first; they answer as the alias. */
static void
servers(void)
{
	const struct in_addr pool[] = { prv1, prv2, prv3 };
	struct libalias *la = denying();
	struct alias_link *link = redirect(la, any, any, 0, masq);
	struct in_addr remote;
	uint32_t i, server;

	for (i = 0; i < 3; i++)
		EQUAL(LibAliasAddServer(la, link, pool[i],
		    htons((uint16_t)(local_port + i))), 0);
	for (i = 0; i < 6; i++) {
		remote.s_addr = htonl(ntohl(ext.s_addr) + i);
		server = 2 - i % 3;
		IN_UDP(la, remote, remote_port, masq, alias_port, pool[server],
		    (uint16_t)(local_port + server));
		EQUAL(OUT_UDP(la, pool[server],
		    (uint16_t)(local_port + server), remote, remote_port,
		    masq), alias_port);
	}
	LibAliasRedirectDelete(la, link);
	EQUAL(LibAliasAddServer(la, link, prv1, htons(local_port)), -1);
	LibAliasUninit(la);
}

static void
once(void)
{
	struct libalias *la = denying();
	struct alias_link *link;
	const struct { struct in_addr remote; uint16_t port; } partial[] = {
		{ any, 0 }, { ext, 0 }, { any, remote_port },
	};
	size_t i;

	for (i = 0; i < sizeof(partial) / sizeof(partial[0]); i++) {
		link = redirect(la, prv1, partial[i].remote, partial[i].port,
		    masq);
		EQUAL(LibAliasRedirectDynamic(la, link), -1);
		LibAliasRedirectDelete(la, link);
	}
	link = redirect(la, prv1, ext, remote_port, masq);
	EQUAL(LibAliasRedirectDynamic(la, link), 0);
	IN_UDP(la, ext, remote_port, masq, alias_port, prv1, local_port);
	IN_UDP(la, ext, remote_port, masq, alias_port, prv1, local_port);
	change_address(la);
	IN_UDP_FAILS(la, ext, remote_port, masq, alias_port);
	/* It is gone, and its name with it. */
	EQUAL(LibAliasRedirectDynamic(la, link), -1);
	LibAliasRedirectDelete(la, link);
	LibAliasUninit(la);
}

const struct test in_tests[] = {
	{ "in: port forward", port_forward },
	{ "in: overlapping ports", overlap },
	{ "in: redirect of any address", any_alias },
	{ "in: redirect of an address", address },
	{ "in: load sharing over servers", servers },
	{ "in: one-shot redirect", once },
	{ NULL, NULL },
};
