/*
 * Instances: one, none, many, many at once.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "check.h"

#define MANY 300

static void
one(void)
{
	struct libalias *la = LibAliasInit(NULL);

	CHECK(la != NULL);
	LibAliasUninit(la);
}

/* Freeing nothing is no end of the program. */
static void
none(void)
{
	LibAliasUninit(NULL);
}

/* An instance made anew is the same one, and empty. */
static void
again(void)
{
	struct libalias *la = LibAliasInit(NULL);
	uint16_t port;
	int i;

	LibAliasSetAddress(la, masq);
	port = OUT_UDP(la, prv1, 0x1234, ext, 0x5678, masq);
	for (i = 0; i < 29; i++)
		CHECK(LibAliasInit(la) == la);
	LibAliasSetAddress(la, masq);
	LibAliasSetMode(la, PKT_ALIAS_DENY_INCOMING, PKT_ALIAS_DENY_INCOMING);
	IN_UDP_FAILS(la, ext, 0x5678, masq, port);
	LibAliasUninit(la);
}

static void
many_at_once(void)
{
	struct libalias *la[MANY], *swap;
	uint32_t i, j;

	for (i = 0; i < MANY; i++) {
		la[i] = LibAliasInit(NULL);
		CHECK(la[i] != NULL);
		for (j = 0; j < i; j++)
			CHECK(la[i] != la[j]);
	}
	for (i = MANY - 1; i > 0; i--) {
		j = draw(i + 1);
		swap = la[i];
		la[i] = la[j];
		la[j] = swap;
	}
	for (i = 0; i < MANY; i++)
		LibAliasUninit(la[i]);
}

const struct test instance_tests[] = {
	{ "instances: one", one },
	{ "instances: none", none },
	{ "instances: the same one again", again },
	{ "instances: many at once", many_at_once },
	{ NULL, NULL },
};
