/* liburcu's quiescent-state readers on the same work as ours.
 *
 * sync
 *
 * Each line of standard input asks for one measurement and is answered by
 * one JSON line with nanoseconds a read:
 *
 *   qsbr READERS MILLISECONDS
 *
 * A read loads the pointer and the value behind it; a reader passes its
 * quiescent state after each 32. A writer replaces the value every 100
 * microseconds all the while, and reuses its memory after a grace period.
 */
#define _GNU_SOURCE
#define URCU_INLINE_SMALL_FUNCTIONS
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <urcu/urcu-qsbr.h>

#define BATCH 32
#define LOOK 4096
#define MOST_READERS 8
#define PAUSE_NS 100000

struct value {
	uint64_t value;
} __attribute__((aligned(64)));

struct reader {
	pthread_t thread;
	int core;
	double millis, ns;
	uint64_t sum;
};

static struct value values[2];
static struct value *published = &values[0];
static int going;

static double seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void stay_on(int core)
{
	cpu_set_t cores;
	CPU_ZERO(&cores);
	CPU_SET(core, &cores);
	pthread_setaffinity_np(pthread_self(), sizeof(cores), &cores);
}

static void *read_on(void *argument)
{
	struct reader *reader = argument;
	uint64_t done = 0, sum = 0;
	stay_on(reader->core);
	urcu_qsbr_register_thread();
	double start = seconds(), now;
	do {
		for (int i = 0; i < LOOK; i++) {
			for (int j = 0; j < BATCH; j++) {
				struct value *value = rcu_dereference(published);
				sum += CMM_ACCESS_ONCE(value->value);
			}
			urcu_qsbr_quiescent_state();
		}
		done += LOOK * BATCH;
		now = seconds();
	} while (now - start < reader->millis / 1e3);
	urcu_qsbr_unregister_thread();
	reader->ns = (now - start) * 1e9 / (double)done;
	reader->sum = sum;
	return NULL;
}

static void *write_on(void *unused)
{
	struct timespec pause = { 0, PAUSE_NS };
	(void)unused;
	for (unsigned int turn = 1; __atomic_load_n(&going, __ATOMIC_ACQUIRE); turn++) {
		struct value *next = &values[turn % 2];
		next->value = turn;
		rcu_assign_pointer(published, next);
		urcu_qsbr_synchronize_rcu();
		nanosleep(&pause, NULL);
	}
	return NULL;
}

int main(void)
{
	char line[256];
	while (fgets(line, sizeof(line), stdin)) {
		struct reader readers[MOST_READERS];
		int n;
		double millis, ns = 0;
		uint64_t sum = 0;
		pthread_t writer;
		if (sscanf(line, "qsbr %d %lf", &n, &millis) != 2 || n < 1 || n > MOST_READERS) {
			printf("{\"error\": \"not understood\"}\n");
			fflush(stdout);
			continue;
		}
		__atomic_store_n(&going, 1, __ATOMIC_RELEASE);
		pthread_create(&writer, NULL, write_on, NULL);
		for (int i = 0; i < n; i++) {
			readers[i].core = i;
			readers[i].millis = millis;
			pthread_create(&readers[i].thread, NULL, read_on, &readers[i]);
		}
		for (int i = 0; i < n; i++) {
			pthread_join(readers[i].thread, NULL);
			ns += readers[i].ns / n;
			sum += readers[i].sum;
		}
		__atomic_store_n(&going, 0, __ATOMIC_RELEASE);
		pthread_join(writer, NULL);
		printf("{\"ns_per_op\": %.4f, \"sum\": %lu}\n", ns, sum);
		fflush(stdout);
	}
	return 0;
}
