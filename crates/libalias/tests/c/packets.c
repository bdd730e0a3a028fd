/*
 * Packets of all lengths and kinds, in memory that is no longer than it is
 * said to be: what valgrind and the address sanitizer are there for.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "check.h"

/* A copy that is exactly `len` bytes long. */
static uint8_t *
copy(const void *bytes, size_t len)
{
	uint8_t *memory = malloc(len > 0 ? len : 1);

	if (memory == NULL)
		abort();
	memcpy(memory, bytes, len);
	return (memory);
}

static struct libalias *
open_instance(void)
{
	struct libalias *la = LibAliasInit(NULL);

	LibAliasSetAddress(la, masq);
	return (la);
}

/* Cut at any place it is refused, and nothing behind the end is touched. */
static void
lengths(void)
{
	struct libalias *la = open_instance();
	struct ip *ip = udp_packet(prv1, 1000, ext, 53);
	uint8_t *cut;
	int len, result;

	EQUAL(LibAliasOut(la, NULL, 100), PKT_ALIAS_ERROR);
	EQUAL(LibAliasIn(la, NULL, 100), PKT_ALIAS_ERROR);
	EQUAL(LibAliasOut(la, ip, -1), PKT_ALIAS_ERROR);
	for (len = 0; len < UDP_LEN; len++) {
		cut = copy(ip, (size_t)len);
		result = LibAliasOut(la, cut, len);
		CHECK(result != PKT_ALIAS_OK);
		CHECK(LibAliasIn(la, cut, len) != PKT_ALIAS_OK);
		CHECK(LibAliasUnaliasOut(la, cut, len) != PKT_ALIAS_OK);
		CHECK(memcmp(cut, ip, (size_t)len) == 0);
		free(cut);
	}
	/* With room behind it, it is as long as its header says. */
	cut = malloc(ROOM);
	memset(cut, 0xee, ROOM);
	memcpy(cut, ip, UDP_LEN);
	EQUAL(LibAliasOut(la, cut, ROOM), PKT_ALIAS_OK);
	for (len = UDP_LEN; len < ROOM; len++)
		EQUAL(cut[len], 0xee);
	free(cut);
	free(ip);
	LibAliasUninit(la);
}

/* Headers that say what is not so. */
static void
malformed(void)
{
	struct libalias *la = open_instance();
	uint8_t before[UDP_LEN];
	struct ip *ip;
	int at, value, result;

	for (at = 0; at < 28; at++) {
		for (value = 0; value < 256; value += 5) {
			ip = udp_packet(prv1, 1000, ext, 53);
			((uint8_t *)ip)[at] = (uint8_t)value;
			memcpy(before, ip, UDP_LEN);
			result = LibAliasOut(la, ip, UDP_LEN);
			CHECK(result == PKT_ALIAS_OK ||
			    memcmp(before, ip, UDP_LEN) == 0);
			memcpy(ip, before, UDP_LEN);
			result = LibAliasIn(la, ip, UDP_LEN);
			CHECK(result == PKT_ALIAS_OK ||
			    result == PKT_ALIAS_FOUND_HEADER_FRAGMENT ||
			    memcmp(before, ip, UDP_LEN) == 0);
			free(ip);
		}
	}
	LibAliasUninit(la);
}

/* Anything at all, of any length, both ways. */
static void
noise(void)
{
	struct libalias *la = open_instance();
	uint8_t *bytes;
	uint32_t i, j, len;

	CHECK(LibAliasRedirectAddr(la, prv2, pub) != NULL);
	for (i = 0; i < 20000; i++) {
		len = draw(120);
		bytes = malloc(len > 0 ? len : 1);
		for (j = 0; j < len; j++)
			bytes[j] = (uint8_t)draw(256);
		if (len > 20 && draw(4) != 0) {
			bytes[0] = (uint8_t)(0x45 + draw(3));
			bytes[2] = 0;
			bytes[3] = (uint8_t)len;
			bytes[6] &= 0x20;
			bytes[7] &= (uint8_t)-(draw(4) == 0);
			bytes[9] = (uint8_t[]){ 1, 6, 17, 47 }[draw(4)];
		}
		if (len > 40 && bytes[9] == 6)
			bytes[20 + draw(2) * 2 + 1] = 21;
		if (draw(2) == 0)
			LibAliasOut(la, bytes, (int)len);
		else
			LibAliasIn(la, bytes, (int)len);
		free(bytes);
	}
	LibAliasUninit(la);
}

/* A sum that is not there stays away; one of zero is sent as 0xffff. */
static void
udp_sums(void)
{
	struct libalias *la = open_instance();
	uint32_t i, zeros = 0;
	struct ip *ip = udp_packet(prv1, 1000, ext, 53);

	udp_of(ip)->uh_sum = 0;
	EQUAL(LibAliasOut(la, ip, UDP_LEN), PKT_ALIAS_OK);
	EQUAL(udp_of(ip)->uh_sum, 0);
	free(ip);
	for (i = 0; i < 65536; i++) {
		ip = udp_packet(prv1, 1000, ext, (uint16_t)(1 + i % 65535));
		EQUAL(LibAliasOut(la, ip, UDP_LEN), PKT_ALIAS_OK);
		zeros += udp_of(ip)->uh_sum == 0;
		CHECK(sums_are_right(ip));
		free(ip);
	}
	EQUAL(zeros, 0);
	LibAliasUninit(la);
}

/* A query, and an error about a packet that went out. */
static void
icmp(void)
{
	struct libalias *la = open_instance();
	struct ip *ip, *inner;
	struct icmp *icmp;
	uint16_t port;

	LibAliasSetMode(la, PKT_ALIAS_DENY_INCOMING, PKT_ALIAS_DENY_INCOMING);
	port = OUT_UDP(la, prv1, 1000, ext, 53, masq);
	ip = raw_packet(pub, masq, IPPROTO_ICMP, 20 + 8 + 28);
	icmp = (struct icmp *)(void *)((uint8_t *)ip + 20);
	icmp->icmp_type = ICMP_UNREACH;
	icmp->icmp_code = ICMP_UNREACH_HOST;
	inner = udp_packet(masq, port, ext, 53);
	memcpy((uint8_t *)icmp + 8, inner, 28);
	free(inner);
	icmp->icmp_cksum = LibAliasInternetChecksum(la,
	    (unsigned short *)(void *)icmp, 36);
	CHECK(sums_are_right(ip));
	EQUAL(LibAliasIn(la, ip, 56), PKT_ALIAS_OK);
	CHECK(same(ip->ip_dst, prv1) && sums_are_right(ip));
	inner = (struct ip *)(void *)((uint8_t *)icmp + 8);
	CHECK(same(inner->ip_src, prv1) && same(inner->ip_dst, ext));
	EQUAL(ntohs(udp_of(inner)->uh_sport), 1000);
	free(ip);
	LibAliasUninit(la);
}

static void
checksum(void)
{
	uint8_t bytes[] = { 0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7 };
	unsigned short words[4], sum;

	memcpy(words, bytes, sizeof(words));
	/* RFC 1071, section 3: the sum is ddf2. */
	sum = LibAliasInternetChecksum(NULL, words, 8);
	EQUAL(ntohs(sum), (uint16_t)~0xddf2);
	EQUAL(ntohs(LibAliasInternetChecksum(NULL, words, 7)),
	    (uint16_t)~(0xddf2 - 0xf7));
	EQUAL(LibAliasInternetChecksum(NULL, NULL, 8), 0xffff);
	EQUAL(LibAliasInternetChecksum(NULL, words, -1), 0xffff);
}

const struct test packet_tests[] = {
	{ "packets: cut anywhere", lengths },
	{ "packets: malformed", malformed },
	{ "packets: noise", noise },
	{ "packets: sums of UDP", udp_sums },
	{ "packets: errors of ICMP", icmp },
	{ "packets: the Internet checksum", checksum },
	{ NULL, NULL },
};
