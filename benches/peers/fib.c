/* DPDK's forwarding tables on the same routes and addresses as ours.
 *
 * fib rte_fib|rte_lpm|rte_fib6 ROUTES ADDRESSES...
 *
 * ROUTES holds records of 8 bytes (IPv4: address u32, length u8, 0 u8, next
 * hop u16) or 20 (IPv6: address in network order, length, 0, next hop), in
 * the machine's byte order; ADDRESSES records of 4 or 16 bytes. The table is
 * made once, and a JSON line says what that took. Then each line of standard
 * input asks for one measurement and is answered by one JSON line:
 *
 *   lookup FILE BATCH MILLISECONDS   FILE counts from 0
 *   check FILE                       a sum over all answers of the file
 *   change COUNT                     withdraws and adds single routes
 */
#include <stdint.h>
#include <string.h>

#include <rte_fib.h>
#include <rte_fib6.h>
#include <rte_lpm.h>
#include <rte_malloc.h>
#include <rte_rib.h>
#include <rte_rib6.h>

#include "dpdk.h"

#define MOST_BATCH 1024
#define NO_ROUTE 0

enum kind { FIB, LPM, FIB6 };

struct route4 {
	uint32_t prefix;
	uint8_t len;
	uint8_t zero;
	uint16_t next_hop;
};

struct route6 {
	uint8_t prefix[16];
	uint8_t len;
	uint8_t zero;
	uint16_t next_hop;
};

struct file {
	uint8_t *bytes;
	size_t len;
};

static enum kind kind;
static struct rte_fib *fib;
static struct rte_lpm *lpm;
static struct rte_fib6 *fib6;
static struct file routes;

static struct file load(const char *name)
{
	struct file file = {0};
	FILE *stream = fopen(name, "rb");
	if (!stream)
		fail(name);
	fseek(stream, 0, SEEK_END);
	file.len = (size_t)ftell(stream);
	rewind(stream);
	file.bytes = aligned_alloc(64, (file.len + 127) / 64 * 64);
	if (!file.bytes || fread(file.bytes, 1, file.len, stream) != file.len)
		fail(name);
	fclose(stream);
	return file;
}

static size_t address_size(void)
{
	return kind == FIB6 ? 16 : 4;
}

static size_t route_count(void)
{
	return routes.len / (kind == FIB6 ? sizeof(struct route6) : sizeof(struct route4));
}

static void add(size_t at)
{
	int result;
	if (kind == FIB6) {
		struct route6 *route = (struct route6 *)routes.bytes + at;
		result = rte_fib6_add(fib6, route->prefix, route->len, route->next_hop);
	} else {
		struct route4 *route = (struct route4 *)routes.bytes + at;
		if (kind == FIB)
			result = rte_fib_add(fib, route->prefix, route->len, route->next_hop);
		else if (route->len == 0)
			result = 0; /* rte_lpm takes lengths from 1 */
		else
			result = rte_lpm_add(lpm, route->prefix, route->len, route->next_hop);
	}
	if (result < 0) {
		fprintf(stderr, "route %zu was refused: %d\n", at, result);
		exit(1);
	}
}

static void withdraw(size_t at)
{
	if (kind == FIB6) {
		struct route6 *route = (struct route6 *)routes.bytes + at;
		rte_fib6_delete(fib6, route->prefix, route->len);
	} else {
		struct route4 *route = (struct route4 *)routes.bytes + at;
		if (kind == FIB)
			rte_fib_delete(fib, route->prefix, route->len);
		else
			rte_lpm_delete(lpm, route->prefix, route->len);
	}
}

static void make(void)
{
	int most = (int)route_count() * 2 + 1024;
	if (kind == FIB) {
		struct rte_fib_conf config = {
			.type = RTE_FIB_DIR24_8,
			.default_nh = NO_ROUTE,
			.max_routes = most,
			.dir24_8 = { .nh_sz = RTE_FIB_DIR24_8_2B, .num_tbl8 = 32767 },
		};
		fib = rte_fib_create("fib", SOCKET_ID_ANY, &config);
		if (!fib)
			fail("rte_fib_create");
		if (rte_fib_select_lookup(fib, RTE_FIB_LOOKUP_DIR24_8_VECTOR_AVX512))
			fprintf(stderr, "rte_fib: no AVX-512 here, its default is measured\n");
	} else if (kind == LPM) {
		struct rte_lpm_config config = { .max_rules = (uint32_t)most, .number_tbl8s = 65536 };
		lpm = rte_lpm_create("lpm", SOCKET_ID_ANY, &config);
		if (!lpm)
			fail("rte_lpm_create");
	} else {
		struct rte_fib6_conf config = {
			.type = RTE_FIB6_TRIE,
			.default_nh = NO_ROUTE,
			.max_routes = most,
			.trie = { .nh_sz = RTE_FIB6_TRIE_4B, .num_tbl8 = 1 << 19 },
		};
		fib6 = rte_fib6_create("fib6", SOCKET_ID_ANY, &config);
		if (!fib6)
			fail("rte_fib6_create");
		if (rte_fib6_select_lookup(fib6, RTE_FIB6_LOOKUP_TRIE_VECTOR_AVX512))
			fprintf(stderr, "rte_fib6: no AVX-512 here, its default is measured\n");
	}
}

static uint64_t lookup(uint8_t *addresses, unsigned int n, uint64_t *wide, uint32_t *narrow)
{
	uint64_t sum = 0;
	if (kind == FIB) {
		rte_fib_lookup_bulk(fib, (uint32_t *)addresses, wide, (int)n);
		sum = wide[n / 2];
	} else if (kind == LPM) {
		rte_lpm_lookup_bulk(lpm, (uint32_t *)addresses, narrow, n);
		sum = narrow[n / 2];
	} else {
		rte_fib6_lookup_bulk(fib6, (uint8_t(*)[16])addresses, wide, (int)n);
		sum = wide[n / 2];
	}
	return sum;
}

static void measure(struct file *file, unsigned int batch, double millis)
{
	static uint64_t wide[MOST_BATCH];
	static uint32_t narrow[MOST_BATCH];
	size_t size = address_size(), count = file->len / size, done = 0;
	uint64_t sum = 0;
	double start = seconds(), end = start, until = start + millis / 1e3;
	while (end < until) {
		for (size_t at = 0; at + batch <= count; at += batch)
			sum += lookup(file->bytes + at * size, batch, wide, narrow);
		done += count / batch * batch;
		end = seconds();
	}
	printf("{\"ns_per_op\": %.4f, \"sum\": %lu}\n", (end - start) * 1e9 / (double)done, sum);
}

/* FNV-like over the answers in order, so that both sides can be compared. */
static void check(struct file *file)
{
	static uint64_t wide[MOST_BATCH];
	static uint32_t narrow[MOST_BATCH];
	size_t size = address_size(), count = file->len / size;
	uint64_t sum = 0;
	for (size_t at = 0; at < count; at += 64) {
		unsigned int n = count - at < 64 ? (unsigned int)(count - at) : 64;
		lookup(file->bytes + at * size, n, wide, narrow);
		for (unsigned int i = 0; i < n; i++) {
			uint64_t answer = wide[i];
			if (kind == LPM)
				answer = narrow[i] & RTE_LPM_LOOKUP_SUCCESS ? narrow[i] & 0xffffff : 0;
			sum = (sum ^ answer) * 0x100000001b3u;
		}
	}
	printf("{\"sum\": %lu}\n", sum);
}

static void change(size_t count)
{
	uint64_t state = 1;
	size_t all = route_count();
	double start = seconds();
	for (size_t done = 0; all && done < count / 2; done++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		size_t at = (size_t)((state >> 33) % all);
		withdraw(at);
		add(at);
	}
	printf("{\"ns_per_op\": %.2f}\n", (seconds() - start) * 1e9 / (double)(count ? count : 1));
}

static void serve(struct file *files, int n)
{
	char line[256];
	while (fgets(line, sizeof(line), stdin)) {
		unsigned int file = 0, batch = 0;
		size_t count = 0;
		double millis = 0;
		if (sscanf(line, "lookup %u %u %lf", &file, &batch, &millis) == 3 &&
		    file < (unsigned int)n && batch && batch <= MOST_BATCH)
			measure(&files[file], batch, millis);
		else if (sscanf(line, "check %u", &file) == 1 && file < (unsigned int)n)
			check(&files[file]);
		else if (sscanf(line, "change %zu", &count) == 1)
			change(count);
		else
			printf("{\"error\": \"not understood\"}\n");
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	char *eal[] = { "fib", "--no-huge", "--no-pci", "--no-shconf", "--no-telemetry",
			"--log-level=error", "--force-max-simd-bitwidth=512", "-m", "3072",
			"--lcores=0", NULL };
	struct file files[16];
	if (argc < 3 || argc > 3 + 16) {
		fprintf(stderr, "usage: fib rte_fib|rte_lpm|rte_fib6 ROUTES ADDRESSES...\n");
		return 2;
	}
	kind = !strcmp(argv[1], "rte_lpm") ? LPM : !strcmp(argv[1], "rte_fib6") ? FIB6 : FIB;
	start_eal(eal, sizeof(eal) / sizeof(*eal) - 1);
	routes = load(argv[2]);
	for (int i = 3; i < argc; i++)
		files[i - 3] = load(argv[i]);
	double start = seconds();
	make();
	for (size_t i = 0; i < route_count(); i++)
		add(i);
	double took = (seconds() - start) * 1e3;
	struct rte_malloc_socket_stats stats = {0};
	rte_malloc_get_socket_stats(0, &stats);
	printf("{\"build_ms\": %.1f, \"heap_bytes\": %zu}\n", took, stats.heap_allocsz_bytes);
	fflush(stdout);
	serve(files, argc - 3);
	return 0;
}
