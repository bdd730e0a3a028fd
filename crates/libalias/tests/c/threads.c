/*
 * Threads: each with its instances, and all with one.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "check.h"

#include <pthread.h>

enum { THREADS = 4, FLOWS = 2000 };

struct work {
	struct libalias *shared;
	uint32_t number;
	int failed;
};

/* Counts by itself: the checks of the others are not for threads. */
static int
there_and_back(struct libalias *la, uint32_t host, uint16_t port)
{
	uint8_t room[UDP_LEN] = { 0x45, 0, 0, UDP_LEN, 0, 0, 0, 0, 64, 17 };
	struct ip *ip = (struct ip *)(void *)room;
	struct udphdr *udp = (struct udphdr *)(void *)(room + 20);
	struct in_addr inside = { htonl(0x0a000000 | host) };
	uint16_t alias;

	ip->ip_src = inside;
	ip->ip_dst = ext;
	udp->uh_sport = htons(port);
	udp->uh_dport = htons(53);
	udp->uh_ulen = htons(UDP_LEN - 20);
	if (LibAliasOut(la, ip, UDP_LEN) != PKT_ALIAS_OK)
		return (0);
	alias = udp->uh_sport;
	if (!same(ip->ip_src, masq))
		return (0);
	ip->ip_src = ext;
	ip->ip_dst = masq;
	udp->uh_sport = htons(53);
	udp->uh_dport = alias;
	return (LibAliasIn(la, ip, UDP_LEN) == PKT_ALIAS_OK &&
	    same(ip->ip_dst, inside) && udp->uh_dport == htons(port));
}

static void *
work(void *argument)
{
	struct work *work = argument;
	struct libalias *own = LibAliasInit(NULL), *passing;
	uint32_t i, host;

	LibAliasSetAddress(own, masq);
	for (i = 0; i < FLOWS; i++) {
		host = work->number << 16 | i;
		work->failed += !there_and_back(own, i, (uint16_t)(1000 + i));
		work->failed += !there_and_back(work->shared, host, 1000);
		if (i % 100 != 0)
			continue;
		passing = LibAliasInit(NULL);
		LibAliasSetAddress(passing, masq);
		work->failed += !there_and_back(passing, i, 1000);
		LibAliasUninit(passing);
	}
	LibAliasUninit(own);
	return (NULL);
}

static void
threads(void)
{
	struct libalias *shared = LibAliasInit(NULL);
	pthread_t thread[THREADS];
	struct work works[THREADS];
	uint32_t i;

	LibAliasSetAddress(shared, masq);
	for (i = 0; i < THREADS; i++) {
		works[i] = (struct work){ shared, i, 0 };
		EQUAL(pthread_create(&thread[i], NULL, work, &works[i]), 0);
	}
	for (i = 0; i < THREADS; i++) {
		EQUAL(pthread_join(thread[i], NULL), 0);
		EQUAL(works[i].failed, 0);
	}
	LibAliasUninit(shared);
}

static void *
free_it(void *la)
{
	LibAliasUninit(la);
	return (NULL);
}

/* Freed by one thread while another works with it: refused from then on. */
static void
freed_meanwhile(void)
{
	struct libalias *la;
	pthread_t thread;
	int i, result, is_gone = 0;
	struct ip *ip;

	for (i = 0; i < 50; i++) {
		la = LibAliasInit(NULL);
		LibAliasSetAddress(la, masq);
		EQUAL(pthread_create(&thread, NULL, free_it, la), 0);
		do {
			ip = udp_packet(prv1, 1000, ext, 53);
			result = LibAliasOut(la, ip, UDP_LEN);
			is_gone = result == PKT_ALIAS_ERROR;
			CHECK(is_gone || result == PKT_ALIAS_OK);
			free(ip);
		} while (!is_gone);
		EQUAL(pthread_join(thread, NULL), 0);
	}
}

const struct test thread_tests[] = {
	{ "threads: their own instances and a common one", threads },
	{ "threads: an instance freed meanwhile", freed_meanwhile },
	{ NULL, NULL },
};
