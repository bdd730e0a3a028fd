/* What the peers that are DPDK share: its memory on transparent huge pages,
 * as ours is, its clock and how it fails. For one source file a program. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_memory.h>

static void fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, rte_strerror(rte_errno));
	exit(1);
}

static double seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* DPDK without hugetlbfs takes its memory from memfd_create, to which the
 * kernel grants no huge pages, and from anonymous memory where that fails. */
int memfd_create(const char *name, unsigned int flags)
{
	(void)name;
	(void)flags;
	errno = ENOSYS;
	return -1;
}

static int huge(const struct rte_memseg_list *list, void *unused)
{
	(void)unused;
	madvise(list->base_va, list->len, MADV_HUGEPAGE);
	return 0;
}

/* The arguments end with a null pointer, which is not counted. */
static void start_eal(char **arguments, int count)
{
	if (rte_eal_init(count, arguments) < 0)
		fail("rte_eal_init");
	rte_memseg_list_walk(huge, NULL);
}
