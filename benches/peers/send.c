/*
 * The barest senders of UDP that the kernel's interfaces allow, one for each
 * way of `fingerpost send`: no rate, no sequence numbers, no flows, the same
 * bytes again and again. `cargo xtask bench send` compares with them.
 *
 *   send WAY ADDRESS PORT PAYLOAD_BYTES SECONDS [INTERFACE SOURCE DEST_MAC]
 *
 * WAY: sendto connected sendmmsg segments af-packet af-packet-ring af-xdp;
 * the last three send frames by INTERFACE. One JSON line comes out.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef SOL_UDP
#define SOL_UDP 17
#endif
#define BATCH 64
#define SLOTS 2048

static struct sockaddr_in to;
static size_t payload;
static char bytes[65536];
static unsigned char frame[2048];
static size_t frame_len;
static double start, lasting, end_at;
static unsigned long sent;

static void fail(const char *what)
{
	fprintf(stderr, "send: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

static double cpu(void)
{
	struct rusage used;
	getrusage(RUSAGE_SELF, &used);
	return used.ru_utime.tv_sec + used.ru_stime.tv_sec +
	       (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

/* A full buffer is no failure: the next call tries again. */
static int passing(void)
{
	return errno == EAGAIN || errno == ENOBUFS || errno == EINTR ||
	       errno == ECONNREFUSED;
}

static int udp(int connected)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (fd < 0)
		fail("socket");
	if (connected && connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		fail("connect");
	return fd;
}

static void by_sendto(void)
{
	int fd = udp(0);
	while (now() < end_at)
		for (int i = 0; i < BATCH; i++) {
			if (sendto(fd, bytes, payload, 0, (struct sockaddr *)&to,
				   sizeof(to)) >= 0)
				sent++;
			else if (!passing())
				fail("sendto");
		}
}

static void by_send(void)
{
	int fd = udp(1);
	while (now() < end_at)
		for (int i = 0; i < BATCH; i++) {
			if (send(fd, bytes, payload, 0) >= 0)
				sent++;
			else if (!passing())
				fail("send");
		}
}

/* `messages` each of `len` bytes, counted as `each` packets. */
static void by_sendmmsg(int fd, char *base, size_t len, int messages, int each,
			void *control, size_t control_len)
{
	static struct mmsghdr headers[BATCH];
	static struct iovec vectors[BATCH];
	for (int i = 0; i < messages; i++) {
		vectors[i].iov_base = base;
		vectors[i].iov_len = len;
		headers[i].msg_hdr.msg_iov = &vectors[i];
		headers[i].msg_hdr.msg_iovlen = 1;
		headers[i].msg_hdr.msg_control = control;
		headers[i].msg_hdr.msg_controllen = control_len;
	}
	while (now() < end_at) {
		int done = sendmmsg(fd, headers, messages, 0);
		if (done >= 0)
			sent += (unsigned long)done * each;
		else if (!passing())
			fail("sendmmsg");
	}
}

static void by_segments(void)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(uint16_t))];
	} control = { 0 };
	uint16_t size = payload;
	int most = 65507 / payload;
	if (most > 64)
		most = 64;
	control.header.cmsg_level = SOL_UDP;
	control.header.cmsg_type = UDP_SEGMENT;
	control.header.cmsg_len = CMSG_LEN(sizeof(size));
	memcpy(CMSG_DATA(&control.header), &size, sizeof(size));
	by_sendmmsg(udp(1), bytes, payload * most, 1, most, &control,
		    sizeof(control.room));
}

static uint16_t sum(const unsigned char *data, size_t len)
{
	uint32_t total = 0;
	for (size_t i = 0; i + 1 < len; i += 2)
		total += (uint32_t)data[i] << 8 | data[i + 1];
	while (total >> 16)
		total = (total & 0xffff) + (total >> 16);
	return htons(~total);
}

static void make_frame(const char *interface, const char *source, const char *mac)
{
	struct ifreq request = { 0 };
	unsigned int m[6];
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	strncpy(request.ifr_name, interface, IFNAMSIZ - 1);
	if (ioctl(fd, SIOCGIFHWADDR, &request) < 0)
		fail("SIOCGIFHWADDR");
	close(fd);
	if (sscanf(mac, "%x:%x:%x:%x:%x:%x", m, m + 1, m + 2, m + 3, m + 4, m + 5) != 6)
		exit(2);
	for (int i = 0; i < 6; i++)
		frame[i] = m[i];
	memcpy(frame + 6, request.ifr_hwaddr.sa_data, 6);
	frame[12] = 8;
	struct iphdr *ip = (struct iphdr *)(frame + 14);
	struct udphdr *udp = (struct udphdr *)(frame + 34);
	ip->version = 4;
	ip->ihl = 5;
	ip->tot_len = htons(28 + payload);
	ip->frag_off = htons(0x4000);
	ip->ttl = 64;
	ip->protocol = 17;
	inet_pton(AF_INET, source, &ip->saddr);
	ip->daddr = to.sin_addr.s_addr;
	ip->check = sum(frame + 14, 20);
	udp->source = htons(50000);
	udp->dest = to.sin_port;
	udp->len = htons(8 + payload);
	frame_len = 42 + payload;
}

static int packet_socket(const char *interface)
{
	int one = 1, buffer = 8 << 20;
	struct sockaddr_ll link = { .sll_family = AF_PACKET,
				    .sll_ifindex = if_nametoindex(interface) };
	int fd = socket(AF_PACKET, SOCK_RAW, 0);
	if (fd < 0)
		fail("AF_PACKET");
	setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof(buffer));
	if (bind(fd, (struct sockaddr *)&link, sizeof(link)) < 0)
		fail("bind");
	return fd;
}

static void by_ring(const char *interface)
{
	int fd = packet_socket(interface), version = TPACKET_V2;
	struct tpacket_req request = { .tp_block_size = 65536,
				       .tp_block_nr = SLOTS * 256 / 65536,
				       .tp_frame_size = 256,
				       .tp_frame_nr = SLOTS };
	const size_t data = TPACKET_ALIGN(sizeof(struct tpacket2_hdr));
	if (frame_len + data > 256)
		exit(2);
	if (setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) < 0 ||
	    setsockopt(fd, SOL_PACKET, PACKET_TX_RING, &request, sizeof(request)) < 0)
		fail("PACKET_TX_RING");
	char *ring = mmap(NULL, SLOTS * 256, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ring == MAP_FAILED)
		fail("mmap");
	for (unsigned long next = 0; now() < end_at;) {
		for (int i = 0; i < BATCH; i++) {
			struct tpacket2_hdr *slot = (void *)(ring + next % SLOTS * 256);
			if (__atomic_load_n(&slot->tp_status, __ATOMIC_ACQUIRE) !=
			    TP_STATUS_AVAILABLE)
				break;
			memcpy((char *)slot + data, frame, frame_len);
			slot->tp_len = frame_len;
			__atomic_store_n(&slot->tp_status, TP_STATUS_SEND_REQUEST,
					 __ATOMIC_RELEASE);
			next++;
			sent++;
		}
		if (send(fd, NULL, 0, MSG_DONTWAIT) < 0 && !passing())
			fail("send");
	}
}

static void by_xdp(const char *interface)
{
	int fd = socket(AF_XDP, SOCK_RAW, 0), slots = SLOTS, fill = 64, budget = 512;
	int buffer = 8 << 20;
	char *memory = mmap(NULL, SLOTS * 2048, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	struct xdp_umem_reg region = { .addr = (uintptr_t)memory,
				       .len = SLOTS * 2048,
				       .chunk_size = 2048 };
	struct xdp_mmap_offsets at;
	socklen_t at_len = sizeof(at);
	struct sockaddr_xdp queue = { .sxdp_family = AF_XDP,
				      .sxdp_ifindex = if_nametoindex(interface) };
	if (fd < 0 ||
	    setsockopt(fd, SOL_XDP, XDP_UMEM_REG, &region, sizeof(region)) < 0 ||
	    setsockopt(fd, SOL_XDP, XDP_UMEM_FILL_RING, &fill, sizeof(fill)) < 0 ||
	    setsockopt(fd, SOL_XDP, XDP_UMEM_COMPLETION_RING, &slots, sizeof(slots)) < 0 ||
	    setsockopt(fd, SOL_XDP, XDP_TX_RING, &slots, sizeof(slots)) < 0 ||
	    getsockopt(fd, SOL_XDP, XDP_MMAP_OFFSETS, &at, &at_len) < 0)
		fail("AF_XDP");
	setsockopt(fd, SOL_XDP, 9 /* XDP_MAX_TX_SKB_BUDGET */, &budget, sizeof(budget));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof(buffer));
	char *tx = mmap(NULL, at.tx.desc + SLOTS * sizeof(struct xdp_desc),
			PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd,
			XDP_PGOFF_TX_RING);
	char *done = mmap(NULL, at.cr.desc + SLOTS * sizeof(uint64_t),
			  PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd,
			  XDP_UMEM_PGOFF_COMPLETION_RING);
	if (tx == MAP_FAILED || done == MAP_FAILED)
		fail("mmap");
	/* The kernel frees a queue a moment after its last socket was closed. */
	for (int tries = 0; bind(fd, (struct sockaddr *)&queue, sizeof(queue)) < 0; tries++) {
		if (errno != EBUSY || tries == 1000)
			fail("bind");
		usleep(1000);
	}
	start = now();
	end_at = start + lasting;
	struct xdp_desc *descs = (void *)(tx + at.tx.desc);
	uint32_t put = 0, got = 0;
	for (int i = 0; i < SLOTS; i++)
		memcpy(memory + i * 2048, frame, frame_len);
	while (now() < end_at) {
		for (int i = 0; i < BATCH && put - got < SLOTS; i++, put++) {
			descs[put % SLOTS].addr = put % SLOTS * 2048;
			descs[put % SLOTS].len = frame_len;
			descs[put % SLOTS].options = 0;
		}
		__atomic_store_n((uint32_t *)(tx + at.tx.producer), put, __ATOMIC_RELEASE);
		if (sendto(fd, NULL, 0, MSG_DONTWAIT, NULL, 0) < 0 && !passing() &&
		    errno != EBUSY)
			fail("sendto");
		got = __atomic_load_n((uint32_t *)(done + at.cr.producer), __ATOMIC_ACQUIRE);
		__atomic_store_n((uint32_t *)(done + at.cr.consumer), got, __ATOMIC_RELEASE);
	}
	sent = got;
}

int main(int argc, char **argv)
{
	if (argc != 6 && argc != 9)
		return 2;
	const char *way = argv[1];
	to.sin_family = AF_INET;
	to.sin_port = htons(atoi(argv[3]));
	payload = atoi(argv[4]);
	if (inet_pton(AF_INET, argv[2], &to.sin_addr) != 1 || payload < 1 || payload > 1400)
		return 2;
	if (argc == 9)
		make_frame(argv[6], argv[7], argv[8]);
	double cpu_before = cpu();
	start = now();
	lasting = atof(argv[5]);
	end_at = start + lasting;
	if (!strcmp(way, "sendto"))
		by_sendto();
	else if (!strcmp(way, "connected"))
		by_send();
	else if (!strcmp(way, "sendmmsg"))
		by_sendmmsg(udp(1), bytes, payload, BATCH, 1, NULL, 0);
	else if (!strcmp(way, "segments"))
		by_segments();
	else if (!strcmp(way, "af-packet") && argc == 9)
		by_sendmmsg(packet_socket(argv[6]), (char *)frame, frame_len, BATCH, 1,
			    NULL, 0);
	else if (!strcmp(way, "af-packet-ring") && argc == 9)
		by_ring(argv[6]);
	else if (!strcmp(way, "af-xdp") && argc == 9)
		by_xdp(argv[6]);
	else
		return 2;
	double seconds = now() - start;
	printf("{\"way\":\"%s\",\"packets\":%lu,\"seconds\":%.6f,\"cpu_seconds\":%.6f}\n", way,
	       sent, seconds, cpu() - cpu_before);
	return 0;
}
