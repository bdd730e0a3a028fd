/*
 * A small natd between two TUN devices: what the router sends by its outside
 * device goes Out, what comes from the world goes In.
 *
 *	natd ROUTER WORLD ADDRESS MODE
 *
 * makes both devices, says "ready", and translates until its input ends.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include <alias.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int
tun(const char *name)
{
	struct ifreq request;
	int fd = open("/dev/net/tun", O_RDWR);

	memset(&request, 0, sizeof(request));
	request.ifr_flags = IFF_TUN | IFF_NO_PI;
	strncpy(request.ifr_name, name, IFNAMSIZ - 1);
	if (fd < 0 || ioctl(fd, TUNSETIFF, &request) < 0) {
		perror(name);
		exit(1);
	}
	return fd;
}

/* The modes of a new instance stay, go, or are for private sources only. */
static void
set_mode(struct libalias *la, const char *mode)
{
	if (strcmp(mode, "0") == 0)
		LibAliasSetMode(la, 0, ~0u);
	else if (strcmp(mode, "unregistered-only") == 0)
		LibAliasSetMode(la, PKT_ALIAS_UNREGISTERED_ONLY,
		    PKT_ALIAS_UNREGISTERED_ONLY);
	else if (strcmp(mode, "default") != 0)
		exit(2);
}

/* One packet from one device to the other. */
static void
pass(struct libalias *la, int from, int to, int is_out)
{
	static unsigned char packet[65536];
	ssize_t len = read(from, packet, sizeof(packet));
	int result;

	if (len < 20 || packet[0] >> 4 != 4)
		return;
	result = is_out ? LibAliasOut(la, packet, sizeof(packet)) :
	    LibAliasIn(la, packet, sizeof(packet));
	/* As natd, which drops what is ignored only where it denies. */
	if (result == PKT_ALIAS_ERROR)
		return;
	len = packet[2] << 8 | packet[3];
	if (write(to, packet, (size_t)len) != len)
		perror("write");
}

int
main(int argc, char **argv)
{
	struct libalias *la = LibAliasInit(NULL);
	struct pollfd fds[3];
	struct in_addr address;

	if (argc != 5 || la == NULL || inet_aton(argv[3], &address) == 0)
		return 2;
	fds[0].fd = tun(argv[1]);
	fds[1].fd = tun(argv[2]);
	fds[2].fd = 0;
	fds[0].events = fds[1].events = fds[2].events = POLLIN;
	set_mode(la, argv[4]);
	LibAliasSetAddress(la, address);
	puts("ready");
	fflush(stdout);
	while (poll(fds, 3, -1) > 0 && fds[2].revents == 0) {
		if (fds[0].revents & POLLIN)
			pass(la, fds[0].fd, fds[1].fd, 1);
		if (fds[1].revents & POLLIN)
			pass(la, fds[1].fd, fds[0].fd, 0);
	}
	LibAliasUninit(la);
	return 0;
}
