/*
 * NULL, stale, foreign and stray pointers: refused, never followed.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "check.h"

/* Every function, with what is no instance. */
static void
refuse(struct libalias *la)
{
	struct ip *ip = udp_packet(prv1, 1, ext, 2);
	struct libalias_packet batch = { ip, UDP_LEN, 7 };
	struct alias_link *link = (struct alias_link *)(void *)la;

	EQUAL(LibAliasOut(la, ip, UDP_LEN), PKT_ALIAS_ERROR);
	EQUAL(LibAliasOutTry(la, ip, UDP_LEN, 1), PKT_ALIAS_ERROR);
	EQUAL(LibAliasOutTry(la, ip, UDP_LEN, 0), PKT_ALIAS_ERROR);
	EQUAL(LibAliasIn(la, ip, UDP_LEN), PKT_ALIAS_ERROR);
	EQUAL(LibAliasUnaliasOut(la, ip, UDP_LEN), PKT_ALIAS_ERROR);
	EQUAL(LibAliasOutBatch(la, &batch, 1), PKT_ALIAS_ERROR);
	EQUAL(LibAliasInBatch(la, &batch, 1), PKT_ALIAS_ERROR);
	EQUAL(LibAliasSetMode(la, ~0u, ~0u), 0);
	EQUAL(LibAliasCheckNewLink(la), 0);
	EQUAL(LibAliasMaintain(la, 100), PKT_ALIAS_ERROR);
	EQUAL(LibAliasProxyRule(la, "delete 1"), -1);
	EQUAL(LibAliasAddServer(la, link, prv1, 1), -1);
	EQUAL(LibAliasRedirectDynamic(la, link), -1);
	EQUAL(LibAliasSaveFragment(la, ip), PKT_ALIAS_ERROR);
	CHECK(LibAliasGetFragment(la, ip) == NULL);
	CHECK(LibAliasRedirectAddr(la, prv1, pub) == NULL);
	CHECK(LibAliasRedirectProto(la, prv1, any, pub, 47) == NULL);
	CHECK(LibAliasRedirectPort(la, prv1, 1, any, 0, pub, 2, 17) == NULL);
	LibAliasRedirectDelete(la, link);
	LibAliasFragmentIn(la, ip, ip);
	LibAliasSetAddress(la, masq);
	LibAliasSetAliasPortRange(la, 1, 2);
	LibAliasSetTarget(la, prv1);
	LibAliasSetFWBase(la, 1, 2);
	LibAliasSetSkinnyPort(la, 2000);
	LibAliasSetTime(la, 5);
	EQUAL(LibAliasSetTimeout(la, LIBALIAS_TIMEOUT_UDP, 5), -1);
	if (la != NULL)
		CHECK(LibAliasInit(la) == NULL);
	LibAliasUninit(la);
	CHECK(same(ip->ip_src, prv1) && sums_are_right(ip));
	EQUAL(batch.result, 7);
	free(ip);
}

static void
null(void)
{
	refuse(NULL);
}

static void
freed(void)
{
	struct libalias *la = LibAliasInit(NULL), *next;

	LibAliasUninit(la);
	refuse(la);
	/* Also when another instance has come. */
	next = LibAliasInit(NULL);
	CHECK(next != NULL && next != la);
	refuse(la);
	LibAliasUninit(next);
}

static void
stray(void)
{
	struct libalias *la = LibAliasInit(NULL);
	void *memory = malloc(64);
	uintptr_t near = (uintptr_t)la;
	unsigned int bit;

	refuse((struct libalias *)memory);
	refuse((struct libalias *)(void *)&la);
	refuse((struct libalias *)UINTPTR_MAX);
	refuse((struct libalias *)(uintptr_t)1);
	for (bit = 0; bit < 8 * sizeof(near); bit++)
		refuse((struct libalias *)(near ^ (uintptr_t)1 << bit));
	/* The instance itself was left alone. */
	LibAliasSetAddress(la, masq);
	OUT_RAW(la, prv1, ext, masq);
	free(memory);
	LibAliasUninit(la);
}

static struct alias_link *
forward(struct libalias *la, uint16_t port)
{
	struct alias_link *link = LibAliasRedirectPort(la, prv1, htons(80),
	    any, 0, masq, htons(port), IPPROTO_UDP);

	CHECK(link != NULL);
	return (link);
}

static void
links(void)
{
	struct libalias *la = LibAliasInit(NULL), *other = LibAliasInit(NULL);
	struct alias_link *link, *kept, *foreign;

	LibAliasSetAddress(la, masq);
	LibAliasSetMode(la, PKT_ALIAS_DENY_INCOMING, PKT_ALIAS_DENY_INCOMING);
	link = forward(la, 1000);
	kept = forward(la, 1001);
	foreign = forward(other, 1000);
	CHECK(link != kept && link != foreign && kept != foreign);

	/* One of another instance, NULL, the instance, and memory. */
	LibAliasRedirectDelete(la, foreign);
	LibAliasRedirectDelete(la, NULL);
	LibAliasRedirectDelete(la, (struct alias_link *)(void *)la);
	LibAliasRedirectDelete(la, (struct alias_link *)(void *)&link);
	EQUAL(LibAliasAddServer(la, foreign, prv2, 1), -1);
	EQUAL(LibAliasRedirectDynamic(la, NULL), -1);
	IN_UDP(la, ext, 9, masq, 1000, prv1, 80);
	IN_UDP(la, ext, 9, masq, 1001, prv1, 80);

	/* Twice, and with others come since. */
	LibAliasRedirectDelete(la, link);
	LibAliasRedirectDelete(la, link);
	CHECK(forward(la, 1002) != link);
	LibAliasRedirectDelete(la, link);
	EQUAL(LibAliasAddServer(la, link, prv2, 1), -1);
	IN_UDP(la, ext, 10, masq, 1001, prv1, 80);
	IN_UDP(la, ext, 10, masq, 1002, prv1, 80);
	IN_UDP_FAILS(la, ext, 10, masq, 1000);

	/* Made anew, the instance has none. */
	CHECK(LibAliasInit(la) == la);
	EQUAL(LibAliasAddServer(la, kept, prv2, 1), -1);
	LibAliasUninit(la);
	LibAliasRedirectDelete(la, kept);
	LibAliasUninit(other);
}

/* One laid down in the place of the one deleted last has its name, as with
 * memory of malloc: FreeBSD's own tests count on that. */
static void
same_place(void)
{
	struct libalias *la = LibAliasInit(NULL);
	struct alias_link *link = forward(la, 1000);

	LibAliasRedirectDelete(la, link);
	CHECK(forward(la, 1000) == link);
	CHECK(forward(la, 1000) != link);
	LibAliasUninit(la);
}

const struct test handle_tests[] = {
	{ "handles: NULL", null },
	{ "handles: a freed instance", freed },
	{ "handles: what is no instance", stray },
	{ "handles: redirects that are gone or another's", links },
	{ "handles: a redirect in the place of another", same_place },
	{ NULL, NULL },
};
