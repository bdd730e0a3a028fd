/* DPDK's buffers on the same work as ours.
 *
 * buffer
 *
 * Each line of standard input asks for one measurement and is answered by
 * one JSON line with nanoseconds a buffer, all in bulk of 32:
 *
 *   bare MILLISECONDS     rte_mempool: taken and given back, not looked at
 *   raw MILLISECONDS      the same, and a line of each is written to
 *   ready MILLISECONDS    rte_pktmbuf: the header is ready for use, the
 *                         first line of the packet is written to
 *   across MILLISECONDS   rte_mempool on one core, written to, over an
 *                         rte_ring to another core, read and given back there
 *
 * Memory is anonymous (no hugetlbfs, no file), on transparent huge pages
 * where the kernel grants them, as ours is.
 */
#include <stdint.h>
#include <string.h>

#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_ring.h>

#include "dpdk.h"

#define BULK 32
#define BUFFERS 16383
#define CACHE 512
#define ON_THE_WAY 1024
/* Bulks from one look at the clock to the next. */
#define LOOK 256

static struct rte_mempool *packets, *elements;
static struct rte_ring *ring;
static volatile int going;

static void touch(void *element)
{
	*(volatile uint64_t *)element = 1;
}

static void bare(void)
{
	void *bulk[BULK];
	if (rte_mempool_get_bulk(elements, bulk, BULK) == 0)
		rte_mempool_put_bulk(elements, bulk, BULK);
}

static void raw(void)
{
	void *bulk[BULK];
	if (rte_mempool_get_bulk(elements, bulk, BULK))
		return;
	for (int i = 0; i < BULK; i++)
		touch(bulk[i]);
	rte_mempool_put_bulk(elements, bulk, BULK);
}

static void ready(void)
{
	struct rte_mbuf *bulk[BULK];
	if (rte_pktmbuf_alloc_bulk(packets, bulk, BULK))
		return;
	for (int i = 0; i < BULK; i++) {
		bulk[i]->data_len = 60;
		bulk[i]->pkt_len = 60;
		touch(rte_pktmbuf_mtod(bulk[i], void *));
	}
	rte_pktmbuf_free_bulk(bulk, BULK);
}

static int send(void *unused)
{
	(void)unused;
	void *bulk[BULK];
	while (going) {
		if (rte_mempool_get_bulk(elements, bulk, BULK))
			continue;
		for (int i = 0; i < BULK; i++)
			touch(bulk[i]);
		if (!rte_ring_sp_enqueue_bulk(ring, bulk, BULK, NULL))
			rte_mempool_put_bulk(elements, bulk, BULK);
	}
	return 0;
}

static uint64_t seen;

static unsigned int receive(void)
{
	void *bulk[BULK];
	unsigned int n = rte_ring_sc_dequeue_burst(ring, bulk, BULK, NULL);
	for (unsigned int i = 0; i < n; i++)
		seen += *(volatile uint64_t *)bulk[i];
	if (n)
		rte_mempool_put_bulk(elements, bulk, n);
	return n;
}

static double here(void (*work)(void), double millis)
{
	uint64_t done = 0;
	double start = seconds(), now;
	do {
		for (int i = 0; i < LOOK; i++)
			work();
		done += LOOK * BULK;
		now = seconds();
	} while (now - start < millis / 1e3);
	return (now - start) * 1e9 / (double)done;
}

static double across(double millis)
{
	unsigned int other = rte_get_next_lcore(-1, 1, 0);
	uint64_t done = 0;
	double start, now;
	going = 1;
	if (rte_eal_remote_launch(send, NULL, other))
		fail("rte_eal_remote_launch");
	while (!receive())
		;
	start = seconds();
	do {
		for (int i = 0; i < LOOK; i++)
			done += receive();
		now = seconds();
	} while (now - start < millis / 1e3);
	going = 0;
	rte_eal_wait_lcore(other);
	while (receive())
		;
	return (now - start) * 1e9 / (double)(done ? done : 1);
}

/* As rte_pktmbuf_pool_create makes it, but packed: without huge pages of
 * hugetlbfs that one keeps each buffer within a small page, 4,096 bytes from
 * the next, where they share a few places of the first cache. */
static struct rte_mempool *packet_pool(void)
{
	struct rte_pktmbuf_pool_private private = {
		.mbuf_data_room_size = RTE_MBUF_DEFAULT_BUF_SIZE,
	};
	struct rte_mempool *pool = rte_mempool_create_empty(
		"packets", BUFFERS, sizeof(struct rte_mbuf) + RTE_MBUF_DEFAULT_BUF_SIZE, CACHE,
		sizeof(private), SOCKET_ID_ANY, RTE_MEMPOOL_F_NO_IOVA_CONTIG);
	if (!pool)
		return NULL;
	rte_mempool_set_ops_byname(pool, "ring_mp_mc", NULL);
	rte_pktmbuf_pool_init(pool, &private);
	if (rte_mempool_populate_default(pool) < 0)
		return NULL;
	rte_mempool_obj_iter(pool, rte_pktmbuf_init, NULL);
	return pool;
}

int main(void)
{
	char *eal[] = { "buffer", "--no-huge", "--no-pci", "--no-shconf", "--no-telemetry",
			"--log-level=error", "-m", "512", "--lcores=0,1", NULL };
	char line[256];
	start_eal(eal, sizeof(eal) / sizeof(*eal) - 1);
	packets = packet_pool();
	elements = rte_mempool_create("elements", BUFFERS, 2048, CACHE, 0, NULL, NULL, NULL,
				      NULL, SOCKET_ID_ANY, RTE_MEMPOOL_F_NO_IOVA_CONTIG);
	ring = rte_ring_create("ring", ON_THE_WAY, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	if (!packets || !elements || !ring)
		fail("making the pools");
	while (fgets(line, sizeof(line), stdin)) {
		char what[64];
		double millis, ns;
		if (sscanf(line, "%63s %lf", what, &millis) != 2)
			continue;
		if (!strcmp(what, "bare"))
			ns = here(bare, millis);
		else if (!strcmp(what, "raw"))
			ns = here(raw, millis);
		else if (!strcmp(what, "ready"))
			ns = here(ready, millis);
		else if (!strcmp(what, "across"))
			ns = across(millis);
		else {
			printf("{\"error\": \"not understood\"}\n");
			fflush(stdout);
			continue;
		}
		printf("{\"ns_per_op\": %.4f}\n", ns);
		fflush(stdout);
	}
	return 0;
}
