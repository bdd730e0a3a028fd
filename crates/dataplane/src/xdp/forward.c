// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// Forwarding at XDP, by the kernel's own tables. What it does not know for
// certain to be forwarded as the kernel would, it hands up (XDP_PASS) with a
// reason: the kernel then does what it would have done without this program.
// Nothing is changed in a packet before all is decided.
//
// Where IPv4 is translated (settings.translation), established flows are
// translated here; all else that is to be translated goes to the engine, by a
// TAP device for each direction, and never to the kernel as it is.
//
// `cargo xtask xdp` makes instructions.rs of it. What the loader (program.rs)
// fills in stands here as numbers that no program has otherwise: maps as
// constants of 64 bits, a function of the kernel as a helper of that number.

#include <linux/bpf.h>
#include <linux/types.h>

#define INLINE static __attribute__((always_inline))
#define htons(x) __builtin_bswap16(x)
#define ntohs(x) __builtin_bswap16(x)

// ---- What the loader knows by number -------------------------------------

#define MAP(name, number)                                                   \
	INLINE void *name(void)                                             \
	{                                                                   \
		void *map;                                                  \
		asm volatile("%0 = " #number " ll" : "=r"(map));            \
		return map;                                                 \
	}

MAP(links, 0x4650000000000000)
MAP(ports, 0x4650000000000001)
MAP(counters, 0x4650000000000002)
MAP(settings, 0x4650000000000003)
MAP(hops, 0x4650000000000004)
MAP(flows, 0x4650000000000005)
MAP(aliases, 0x4650000000000006)
MAP(claims, 0x4650000000000007)
MAP(answering, 0x4650000000000008)

static void *(*map_lookup)(void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;
static long (*map_update)(void *map, const void *key, const void *value,
			  __u64 flags) = (void *)BPF_FUNC_map_update_elem;
static long (*redirect_map)(void *map, __u64 key, __u64 flags) = (void *)BPF_FUNC_redirect_map;
static long (*adjust_tail)(struct xdp_md *ctx, int delta) = (void *)BPF_FUNC_xdp_adjust_tail;
static long (*fib_lookup)(void *ctx, struct bpf_fib_lookup *params, int len,
			  __u32 flags) = (void *)BPF_FUNC_fib_lookup;
static struct bpf_sock *(*skc_lookup_tcp)(void *ctx, struct bpf_sock_tuple *tuple, __u32 size,
					  __u64 netns, __u64 flags) = (void *)BPF_FUNC_skc_lookup_tcp;
static struct bpf_sock *(*sk_lookup_udp)(void *ctx, struct bpf_sock_tuple *tuple, __u32 size,
					 __u64 netns, __u64 flags) = (void *)BPF_FUNC_sk_lookup_udp;
static long (*sk_release)(void *sock) = (void *)BPF_FUNC_sk_release;
static long (*check_mtu)(void *ctx, __u32 index, __u32 *mtu, __s32 more,
			 __u64 flags) = (void *)BPF_FUNC_check_mtu;
static __u64 (*coarse_ns)(void) = (void *)160; // ktime_get_coarse_ns
static __u64 (*buff_len)(struct xdp_md *ctx) = (void *)188; // xdp_get_buff_len
// bpf_xdp_metadata_rx_vlan_tag, or -EOPNOTSUPP where there is no such thing.
static int (*rx_vlan_tag)(struct xdp_md *ctx, __be16 *protocol, __u16 *tci) = (void *)0x4650;

// ---- What is shared with xdp/layout.rs -----------------------------------

// Of a link: what is done there.
enum {
	RECEIVE4 = 1 << 0, // IPv4 that comes in is looked at
	RECEIVE6 = 1 << 1,
	SEND4 = 1 << 2, // IPv4 may be sent there from here
	SEND6 = 1 << 3,
	SEND_LONG = 1 << 4, // frames in several buffers, too
	STRICT = 1 << 5, // rp_filter 1
	SOFT = 1 << 6, // checksums may be unfinished
	OUTSIDE = 1 << 7, // what leaves there from elsewhere is translated
};

struct link {
	__u32 flags;
	__u32 slot;
	__u8 mac[6];
	__u8 unused[2];
};

struct settings {
	__u64 until; // somebody watches, on the coarse monotonic clock
	__u32 most4; // bytes of an IPv4 packet, see forward4
	__u32 most6;
	__u32 translation;
	__u32 engine[2]; // TAP devices: for what goes out, for what comes in
	__u16 ports[2]; // of aliases: the first and the last that flows may have
};

// Of settings.translation.
enum {
	TRANSLATE = 1 << 0,
	CLOSED_WITHOUT = 1 << 1, // without the engine nothing leaves as it is
	STRANGER_OUTSIDE = 1 << 2, // a link outside is not known at the moment
};

// A packet of an established flow as it comes in.
struct flow_key {
	__u32 from;
	__u32 to;
	__u16 sport;
	__u16 dport;
	__u8 protocol;
	__u8 comes_in; // from outside
	__u8 unused[2];
};

// What is to be done with it.
struct flow {
	// When one came last, on the coarse monotonic clock, to FRESH.
	__u64 used;
	__u32 address; // of the source, or of the destination of what comes in
	__u16 port;
	__u16 ip_delta; // what that does to a sum over the addresses
	__u16 upper_delta; // and over the ports as well
	__u8 unused[2];
	__u32 link; // that it came by, and rightly
};

// For how long what was found out of a flow is not asked again, nanoseconds.
#define FRESH 250000000

struct alias_key {
	__u32 bits;
	__u32 address;
};

// What the engine is told of a packet, in the frame's source.
enum {
	NOTE_UNFINISHED = 1 << 0,
	NOTE_TAKE_BACK = 1 << 1, // it may end a flow that is translated here
};

// Whose a port of all aliases is by the rules.
enum {
	CLAIM_TCP = 1 << 0,
	CLAIM_UDP = 1 << 1,
};

struct hop {
	__u32 link;
	__u32 family;
	__u8 address[16];
};

struct count {
	__u64 packets;
	__u64 bytes;
};

#define REASONS 32

enum reason {
	FORWARDED = 0,
	NOT_IP = 1,
	VLAN = 2,
	OTHER_STATION = 3,
	SPECIAL_ADDRESS = 4,
	MALFORMED = 5,
	OPTIONS = 6,
	FRAGMENT = 7,
	TTL = 8,
	ICMP = 9,
	PROTOCOL = 10,
	UNFINISHED = 11,
	SOURCE = 12,
	HOST = 13,
	REJECTED = 14,
	DISABLED = 15,
	ENCAPSULATED = 16,
	NO_NEIGHBOUR = 17,
	TOO_BIG = 18,
	OTHER_LINK = 19,
	SAME_LINK = 20,
	CANNOT_SEND = 21,
	PAUSED = 22,
	UNWATCHED = 23,
	FAILED = 24,
	TRANSLATED = 25,
	ENGINE = 26,
	CLOSED = 27,
	TOO_LONG = 28,
	BAD_SOURCE = 29,
};

// ---- Packets --------------------------------------------------------------

#define AF_INET 2
#define AF_INET6 10
#define LOOPBACK 1 // the link's number, in each namespace

#define ICMP_PROTOCOL 1
#define IPIP_PROTOCOL 4
#define TCP_PROTOCOL 6
#define UDP_PROTOCOL 17
#define IPV6_PROTOCOL 41
#define GRE_PROTOCOL 47
#define ESP_PROTOCOL 50
#define ICMPV6_PROTOCOL 58

#define LEAST_FRAME 60

struct eth {
	__u8 to[6];
	__u8 from[6];
	__u16 type;
} __attribute__((packed));

struct ip4 {
	__u8 version;
	__u8 tos;
	__u16 len;
	__u16 id;
	__u16 fragment;
	__u8 ttl;
	__u8 protocol;
	__u16 sum;
	__u32 from;
	__u32 to;
} __attribute__((packed));

struct ip6 {
	__u32 flow;
	__u16 len;
	__u8 next;
	__u8 hops;
	__u32 from[4];
	__u32 to[4];
} __attribute__((packed));

// What a packet is, once it has been looked at.
struct seen {
	__u32 l3_len;
	__u8 protocol;
	__u16 sport;
	__u16 dport;
	// What a finished pseudo header sums up to, not folded.
	__u32 pseudo;
	// TCP's flags.
	__u8 flags;
	// The header of IPv4 is one that the kernel goes by.
	__u8 is_sound;
	// The ports are known.
	__u8 has_ports;
};

INLINE __u16 fold(__u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

INLINE __u32 sum_words(const void *words, int count)
{
	const __u16 *word = words;
	__u32 sum = 0;

#pragma unroll
	for (int i = 0; i < count; i++)
		sum += word[i];
	return sum;
}

// Ports that tunnels are known by: what is inside may be unfinished, too.
INLINE int is_tunnel(__u16 port)
{
	return port == htons(4789) || port == htons(8472) || port == htons(6081);
}

// Whether the transport's header is one to go on with. On a link whose other
// end may leave checksums to a device that is none (veth), what is unfinished
// is told by its checksum: it is the pseudo header's sum, and nothing else.
INLINE enum reason transport(const __u8 *at, const __u8 *end, struct seen *seen, int is_soft)
{
	switch (seen->protocol) {
	case TCP_PROTOCOL:
		if (at + 18 > end)
			return MALFORMED;
		seen->flags = at[13];
		seen->has_ports = 1;
		seen->sport = *(const __u16 *)at;
		seen->dport = *(const __u16 *)(at + 2);
		if (is_soft && *(const __u16 *)(at + 16) == fold(seen->pseudo))
			return UNFINISHED;
		return FORWARDED;
	case UDP_PROTOCOL:
		if (at + 8 > end)
			return MALFORMED;
		seen->has_ports = 1;
		seen->sport = *(const __u16 *)at;
		seen->dport = *(const __u16 *)(at + 2);
		if (is_soft) {
			__u16 sum = *(const __u16 *)(at + 6);

			if (!sum || sum == fold(seen->pseudo))
				return UNFINISHED;
			if (is_tunnel(seen->dport))
				return UNFINISHED;
		}
		return FORWARDED;
	case ICMP_PROTOCOL:
		if (at + 1 > end)
			return MALFORMED;
		// Echo and its answer. Errors go the way of what they are about.
		return *at == 0 || *at == 8 ? FORWARDED : ICMP;
	case ICMPV6_PROTOCOL:
		if (at + 1 > end)
			return MALFORMED;
		return *at == 128 || *at == 129 ? FORWARDED : ICMP;
	case IPIP_PROTOCOL:
	case IPV6_PROTOCOL:
	case GRE_PROTOCOL:
		return is_soft ? UNFINISHED : FORWARDED;
	case ESP_PROTOCOL:
		if (is_soft)
			return UNFINISHED;
		if (at + 4 > end)
			return MALFORMED;
		break;
	default:
		return PROTOCOL;
	}
	// The kernel's rules take the first words for ports, of ESP as well.
	seen->sport = *(const __u16 *)at;
	seen->dport = *(const __u16 *)(at + 2);
	return FORWARDED;
}

// 0/8, 127/8, multicast and beyond.
INLINE int is_special4(__u32 address)
{
	__u8 first = address & 0xff;

	return first == 0 || first == 127 || first >= 224;
}

INLINE enum reason look4(const struct ip4 *ip, const __u8 *end, __u32 room,
			 struct seen *seen, int is_soft)
{
	if ((const __u8 *)(ip + 1) > end)
		return MALFORMED;
	if (ip->version != 0x45) {
		seen->is_sound = ip->version >> 4 == 4 && (ip->version & 15) > 5;
		return seen->is_sound ? OPTIONS : MALFORMED;
	}
	seen->l3_len = ntohs(ip->len);
	if (seen->l3_len < sizeof(*ip) || seen->l3_len > room)
		return MALFORMED;
	if (fold(sum_words(ip, 10)) != 0xffff)
		return MALFORMED;
	seen->is_sound = 1;
	if (ip->fragment & htons(0x3fff))
		return FRAGMENT;
	if (ip->ttl <= 1)
		return TTL;
	if (is_special4(ip->from) || is_special4(ip->to))
		return SPECIAL_ADDRESS;
	seen->protocol = ip->protocol;
	seen->pseudo = sum_words(&ip->from, 4) + htons(ip->protocol) +
		       htons(seen->l3_len - sizeof(*ip));
	return transport((const __u8 *)(ip + 1), end, seen, is_soft);
}

// Multicast, link-local, and all that begins with 64 zero bits: loopback,
// none, IPv4's.
INLINE int is_special6(const __u32 *address)
{
	__u8 first = address[0] & 0xff;
	__u8 second = address[0] >> 8 & 0xff;

	if (first == 0xff || (first == 0xfe && (second & 0xc0) == 0x80))
		return 1;
	return !address[0] && !address[1];
}

INLINE enum reason look6(const struct ip6 *ip, const __u8 *end, __u32 room,
			 struct seen *seen, int is_soft)
{
	__u32 len;

	if ((const __u8 *)(ip + 1) > end)
		return MALFORMED;
	if ((ip->flow & 0xf0) != 0x60)
		return MALFORMED;
	len = ntohs(ip->len);
	seen->l3_len = len + sizeof(*ip);
	if (!len || seen->l3_len > room || seen->l3_len > 0xffff)
		return MALFORMED;
	if (ip->hops <= 1)
		return TTL;
	if (is_special6(ip->from) || is_special6(ip->to))
		return SPECIAL_ADDRESS;
	seen->protocol = ip->next;
	switch (ip->next) {
	case 0:
	case 43:
	case 51:
	case 60:
	case 135:
	case 139:
	case 140:
		return OPTIONS;
	case 44:
		return FRAGMENT;
	case ICMP_PROTOCOL:
		return PROTOCOL;
	}
	seen->pseudo = sum_words(ip->from, 16) + htons(ip->next) + htons(len);
	return transport((const __u8 *)(ip + 1), end, seen, is_soft);
}

// ---- The way --------------------------------------------------------------

INLINE enum reason of_lookup(long result)
{
	switch (result) {
	case BPF_FIB_LKUP_RET_SUCCESS:
		return FORWARDED;
	case BPF_FIB_LKUP_RET_NOT_FWDED:
		return HOST;
	case BPF_FIB_LKUP_RET_BLACKHOLE:
	case BPF_FIB_LKUP_RET_UNREACHABLE:
	case BPF_FIB_LKUP_RET_PROHIBIT:
		return REJECTED;
	case BPF_FIB_LKUP_RET_FWD_DISABLED:
		return DISABLED;
	case BPF_FIB_LKUP_RET_UNSUPP_LWT:
		return ENCAPSULATED;
	case BPF_FIB_LKUP_RET_NO_NEIGH:
		return NO_NEIGHBOUR;
	case BPF_FIB_LKUP_RET_FRAG_NEEDED:
		return TOO_BIG;
	}
	return FAILED;
}

// The reverse path, as fib_validate_source() of the kernel goes it: never
// an address of our own, by rp_filter 1 only by the link it came in. What is
// doubtful (no way back at all, several) the kernel decides.
INLINE int is_valid_source(struct xdp_md *ctx, const struct ip4 *ip, __u32 to,
			   const struct seen *seen, __u32 flags)
{
	struct bpf_fib_lookup back = {
		.family = AF_INET,
		.l4_protocol = seen->protocol,
		.sport = seen->sport,
		.dport = seen->dport,
		.ifindex = LOOPBACK,
		.tos = ip->tos,
		.ipv4_src = to,
		.ipv4_dst = ip->from,
	};
	long result = fib_lookup(ctx, &back, sizeof(back), 0);

	if (result != BPF_FIB_LKUP_RET_SUCCESS && result != BPF_FIB_LKUP_RET_NO_NEIGH)
		return 0;
	return !(flags & STRICT) || back.ifindex == ctx->ingress_ifindex;
}

// Where it goes, and whether it may go there from here.
INLINE enum reason find(struct xdp_md *ctx, struct bpf_fib_lookup *way, __u32 send, __u32 len)
{
	struct link *to;
	enum reason reason;

	reason = of_lookup(fib_lookup(ctx, way, sizeof(*way), 0));
	if (reason != FORWARDED)
		return reason;
	if (way->ifindex == ctx->ingress_ifindex)
		return SAME_LINK;
	__u32 index = way->ifindex;
	to = map_lookup(links(), &index);
	if (!to)
		return OTHER_LINK;
	if (!(to->flags & send))
		return CANNOT_SEND;
	if (len > ctx->data_end - ctx->data && !(to->flags & SEND_LONG))
		return CANNOT_SEND;
	return FORWARDED;
}

// Notes that the next hop is in use: the kernel does not see it.
INLINE void note(const struct bpf_fib_lookup *way)
{
	struct hop hop = { .link = way->ifindex, .family = way->family };
	__u32 one = 1;

	if (way->family == AF_INET)
		*(__u32 *)hop.address = way->ipv4_dst;
	else
		__builtin_memcpy(hop.address, way->ipv6_dst, 16);
	if (!map_lookup(hops(), &hop))
		map_update(hops(), &hop, &one, BPF_ANY);
}

// Takes off what stands behind the packet, as the kernel does; but not what
// fills up the shortest frame of Ethernet.
INLINE int trim(struct xdp_md *ctx, __u32 l3_len, __u32 len)
{
	__u32 wanted = l3_len + sizeof(struct eth);

	if (wanted < LEAST_FRAME)
		wanted = LEAST_FRAME;
	if (len <= wanted)
		return 0;
	return adjust_tail(ctx, (int)wanted - (int)len);
}

// The question of where a packet of IPv4 goes.
INLINE void ask(struct xdp_md *ctx, struct bpf_fib_lookup *way, const struct ip4 *ip,
		const struct seen *seen)
{
	way->family = AF_INET;
	way->l4_protocol = seen->protocol;
	way->sport = seen->sport;
	way->dport = seen->dport;
	way->tot_len = seen->l3_len;
	way->ifindex = ctx->ingress_ifindex;
	way->tos = ip->tos;
	way->ipv4_src = ip->from;
	way->ipv4_dst = ip->to;
}

INLINE int has_tag(struct xdp_md *ctx)
{
	__be16 protocol = 0;
	__u16 tci = 0;

	return rx_vlan_tag(ctx, &protocol, &tci) == 0;
}

// The kernel forwards by a route's MTU; the lookup looks at it only where it
// is locked. So what is longer than the least of them goes up.
INLINE enum reason forward4(struct xdp_md *ctx, const struct link *from, __u32 len,
			    struct bpf_fib_lookup *way, __u32 most)
{
	const __u8 *end = (const __u8 *)(long)ctx->data_end;
	const struct ip4 *ip = (const void *)(long)ctx->data + sizeof(struct eth);
	struct seen seen = {};
	enum reason reason;

	if (!(from->flags & RECEIVE4))
		return PAUSED;
	reason = look4(ip, end, len - sizeof(struct eth), &seen, from->flags & SOFT);
	if (reason != FORWARDED)
		return reason;
	if (seen.l3_len > most)
		return TOO_BIG;
	ask(ctx, way, ip, &seen);
	reason = find(ctx, way, SEND4, len);
	if (reason != FORWARDED)
		return reason;
	if (!is_valid_source(ctx, ip, ip->to, &seen, from->flags))
		return SOURCE;
	return trim(ctx, seen.l3_len, len) ? FAILED : FORWARDED;
}

INLINE enum reason forward6(struct xdp_md *ctx, const struct link *from, __u32 len,
			    struct bpf_fib_lookup *way, __u32 most)
{
	const __u8 *end = (const __u8 *)(long)ctx->data_end;
	const struct ip6 *ip = (const void *)(long)ctx->data + sizeof(struct eth);
	struct seen seen = {};
	enum reason reason;

	if (!(from->flags & RECEIVE6))
		return PAUSED;
	reason = look6(ip, end, len - sizeof(struct eth), &seen, from->flags & SOFT);
	if (reason != FORWARDED)
		return reason;
	if (seen.l3_len > most)
		return TOO_BIG;
	way->family = AF_INET6;
	way->l4_protocol = seen.protocol;
	way->sport = seen.sport;
	way->dport = seen.dport;
	way->tot_len = seen.l3_len;
	way->ifindex = ctx->ingress_ifindex;
	way->flowinfo = ip->flow & 0xffffff0f;
	__builtin_memcpy(way->ipv6_src, ip->from, 16);
	__builtin_memcpy(way->ipv6_dst, ip->to, 16);
	reason = find(ctx, way, SEND6, len);
	if (reason != FORWARDED)
		return reason;
	return trim(ctx, seen.l3_len, len) ? FAILED : FORWARDED;
}

// ---- Translation -----------------------------------------------------------

// What is to be done with a packet beside forwarding it.
struct change {
	const struct flow *flow;
	__u8 comes_in;
	__u8 is_tcp;
	__u8 notes;
	__u8 is_fresh; // the next hop is noted
};

// Who is at work: somebody watches and nothing is in the way, so that flows
// that are known are translated; the engine answers. With something in the way
// all is the engine's, behind which the kernel does what it would do.
enum {
	WATCHED = 1 << 0,
	ANSWERS = 1 << 1,
};

#define SYN 0x02
#define ACK 0x10
#define CHANGES 0x07 // FIN, SYN, RST

INLINE int is_alias(__u32 address)
{
	struct alias_key key = { .bits = 32, .address = address };

	return map_lookup(aliases(), &key) != 0;
}

// Whether what is sent to an alias is this host's: it has a connection of
// these ends, or listens there and neither a rule nor a flow may have the port.
INLINE int is_hosts(struct xdp_md *ctx, const struct settings *set, const struct ip4 *ip,
		    const struct seen *seen, int works)
{
	struct bpf_sock_tuple tuple = {};
	__u32 port = ntohs(seen->dport);
	int is_tcp = seen->protocol == TCP_PROTOCOL;
	const __u8 *claim = map_lookup(claims(), &port);
	struct bpf_sock *sock;
	int is_listening, may_be_flows;
	__u32 state;

	if (!seen->has_ports)
		return 0;
	// DHCP's clients and servers have no socket that could be found.
	if (!is_tcp && (port == 67 || port == 68))
		return 1;
	if (claim && *claim & (is_tcp ? CLAIM_TCP : CLAIM_UDP))
		return 0;
	may_be_flows = works & ANSWERS && port >= set->ports[0] && port <= set->ports[1];
	tuple.ipv4.saddr = ip->from;
	tuple.ipv4.daddr = ip->to;
	tuple.ipv4.sport = seen->sport;
	tuple.ipv4.dport = seen->dport;
	// One load for both kinds of socket is none to the verifier.
	if (is_tcp) {
		sock = skc_lookup_tcp(ctx, &tuple, sizeof(tuple.ipv4), BPF_F_CURRENT_NETNS, 0);
		if (!sock)
			return 0;
		state = sock->state;
		asm volatile("# of TCP" : "+r"(state));
		is_listening = state == BPF_TCP_LISTEN;
		sk_release(sock);
	} else {
		sock = sk_lookup_udp(ctx, &tuple, sizeof(tuple.ipv4), BPF_F_CURRENT_NETNS, 0);
		if (!sock)
			return 0;
		state = sock->state;
		asm volatile("# of UDP" : "+r"(state));
		is_listening = state != BPF_TCP_ESTABLISHED;
		sk_release(sock);
	}
	if (!is_listening)
		return 1;
	if (is_tcp)
		return (seen->flags & (SYN | ACK)) == SYN;
	return !may_be_flows;
}

INLINE struct flow *flow_of(const struct ip4 *ip, const struct seen *seen, int comes_in)
{
	struct flow_key key = {
		.from = ip->from,
		.to = ip->to,
		.sport = seen->sport,
		.dport = seen->dport,
		.protocol = seen->protocol,
		.comes_in = comes_in,
	};

	return map_lookup(flows(), &key);
}

// Takes a flow into use. Whether a packet of it may come from there: that is
// looked up when it comes by another link, or now and then.
INLINE int take(struct xdp_md *ctx, struct flow *flow, const struct ip4 *ip, __u32 to,
		const struct seen *seen, __u32 flags, struct change *change)
{
	__u64 now = coarse_ns();

	change->flow = flow;
	change->is_tcp = seen->protocol == TCP_PROTOCOL;
	change->is_fresh = flow->link == ctx->ingress_ifindex && now - flow->used < FRESH;
	if (change->is_fresh)
		return 1;
	if (!is_valid_source(ctx, ip, to, seen, flags))
		return 0;
	flow->used = now;
	flow->link = ctx->ingress_ifindex;
	return 1;
}

// For the engine, or for nobody while that does not answer.
INLINE enum reason engine(const struct settings *set, int works, enum reason otherwise)
{
	if (works & ANSWERS)
		return ENGINE;
	return set->translation & CLOSED_WITHOUT ? CLOSED : otherwise;
}

// Whether a way leads outside.
INLINE int leads_outside(const struct bpf_fib_lookup *way)
{
	__u32 index = way->ifindex;
	const struct link *to = map_lookup(links(), &index);

	return to && to->flags & OUTSIDE;
}

// The link that a packet leaves by, whatever its length: 0 where it does not.
INLINE int goes_outside(struct xdp_md *ctx, struct bpf_fib_lookup *way)
{
	long result;

	way->tot_len = 0;
	way->ifindex = ctx->ingress_ifindex;
	result = fib_lookup(ctx, way, sizeof(*way), 0);
	if (result != BPF_FIB_LKUP_RET_SUCCESS && result != BPF_FIB_LKUP_RET_NO_NEIGH)
		return 0;
	return leads_outside(way);
}

// For the engine what the kernel would take from there.
INLINE enum reason checked_engine(struct xdp_md *ctx, const struct link *from,
				  const struct settings *set, const struct ip4 *ip,
				  const struct seen *seen, int works)
{
	if (!is_valid_source(ctx, ip, ip->to, seen, from->flags))
		return BAD_SOURCE;
	return engine(set, works, HOST);
}

// Whether a packet is longer than the link of a way takes. The lookup also
// knows what this host has found out of the way for itself, by which the
// kernel does not forward.
INLINE int is_longer_than_link(struct xdp_md *ctx, const struct bpf_fib_lookup *way, __u32 len)
{
	__u32 mtu = 0;

	return check_mtu(ctx, way->ifindex, &mtu, 0, 0) >= 0 && len > mtu;
}

// What comes from outside.
INLINE enum reason translate_in(struct xdp_md *ctx, const struct link *from, __u32 len,
				struct bpf_fib_lookup *way, const struct settings *set,
				struct change *change, const struct ip4 *ip, struct seen *seen,
				enum reason reason, int works)
{
	int to_alias = is_alias(ip->to);
	struct flow *flow;

	if (!to_alias) {
		enum reason found;

		ask(ctx, way, ip, seen);
		way->tot_len = 0;
		found = of_lookup(fib_lookup(ctx, way, sizeof(*way), 0));
		if (found == HOST || found == REJECTED || found == DISABLED || reason == TTL)
			return found == FORWARDED ? reason : found;
		if (!is_valid_source(ctx, ip, ip->to, seen, from->flags))
			return BAD_SOURCE;
		return engine(set, works, reason == FORWARDED ? UNWATCHED : reason);
	}
	flow = seen->has_ports ? flow_of(ip, seen, 1) : 0;
	if (reason == TTL)
		// The host would answer to the end of a flow.
		return flow ? CLOSED : TTL;
	if (!flow) {
		if (is_hosts(ctx, set, ip, seen, works))
			return HOST;
		if (!(works & ANSWERS) && seen->protocol == ICMP_PROTOCOL)
			return HOST;
		return checked_engine(ctx, from, set, ip, seen, works);
	}
	if (seen->protocol == TCP_PROTOCOL && seen->flags & CHANGES) {
		change->notes |= NOTE_TAKE_BACK;
		return checked_engine(ctx, from, set, ip, seen, works);
	}
	if (reason != FORWARDED || !(works & WATCHED) || seen->l3_len > set->most4)
		return checked_engine(ctx, from, set, ip, seen, works);
	ask(ctx, way, ip, seen);
	way->ipv4_dst = flow->address;
	way->dport = flow->port;
	reason = find(ctx, way, SEND4, len);
	// Its neighbours, lengths and links are the kernel's, behind the engine.
	if (reason != FORWARDED)
		return checked_engine(ctx, from, set, ip, seen, works);
	if (!take(ctx, flow, ip, way->ipv4_dst, seen, from->flags, change))
		return BAD_SOURCE;
	change->comes_in = 1;
	return trim(ctx, seen->l3_len, len) ? CLOSED : TRANSLATED;
}

// What comes from inside.
INLINE enum reason translate_out(struct xdp_md *ctx, const struct link *from, __u32 len,
				 struct bpf_fib_lookup *way, const struct settings *set,
				 struct change *change, const struct ip4 *ip, struct seen *seen,
				 enum reason reason, int works)
{
	enum reason found;
	struct flow *flow = 0;
	int goes_out = 0;

	ask(ctx, way, ip, seen);
	found = find(ctx, way, SEND4, len);
	if (found == FORWARDED || found == NO_NEIGHBOUR || found == CANNOT_SEND)
		goes_out = leads_outside(way);
	if ((goes_out || found == TOO_BIG) && seen->has_ports)
		flow = flow_of(ip, seen, 0);
	if (flow && seen->protocol == TCP_PROTOCOL && seen->flags & CHANGES) {
		change->notes |= NOTE_TAKE_BACK;
		flow = 0;
	}
	if (flow && works & WATCHED && reason == FORWARDED && found == FORWARDED &&
	    seen->l3_len <= set->most4) {
		if (!take(ctx, flow, ip, ip->to, seen, from->flags, change))
			return BAD_SOURCE;
		return trim(ctx, seen->l3_len, len) ? CLOSED : TRANSLATED;
	}
	if (is_alias(ip->to)) {
		if (is_hosts(ctx, set, ip, seen, works))
			return HOST;
		if (reason == TTL)
			return TTL;
		// An alias need not be an address of this host.
		if (!(works & ANSWERS))
			return found == HOST ? HOST : engine(set, works, HOST);
		return checked_engine(ctx, from, set, ip, seen, works);
	}
	switch (found) {
	case FORWARDED:
	case NO_NEIGHBOUR:
	case CANNOT_SEND:
		if (goes_out)
			break;
		if (reason != FORWARDED || found != FORWARDED)
			return reason != FORWARDED ? reason : found;
		if (!(works & WATCHED))
			return from->flags & RECEIVE4 ? UNWATCHED : PAUSED;
		if (seen->l3_len > set->most4)
			return TOO_BIG;
		if (!is_valid_source(ctx, ip, ip->to, seen, from->flags))
			return SOURCE;
		return trim(ctx, seen->l3_len, len) ? FAILED : FORWARDED;
	case TOO_BIG:
		if (!goes_outside(ctx, way))
			return found;
		// The kernel tells the sender, and sends nothing.
		if (ip->fragment & htons(0x4000) && is_longer_than_link(ctx, way, seen->l3_len))
			return TOO_BIG;
		break;
	case FAILED:
		break;
	case OTHER_LINK:
		// One that is outside may have been made anew since somebody looked.
		if (set->translation & STRANGER_OUTSIDE || !(works & ANSWERS))
			return engine(set, 0, found);
		return found;
	default:
		return found;
	}
	if (reason == TTL)
		return TTL;
	// The kernel does not see it behind the engine; without a way back there
	// is no answer either.
	if (!is_valid_source(ctx, ip, ip->to, seen, from->flags))
		return BAD_SOURCE;
	return engine(set, works, reason != FORWARDED ? reason : UNWATCHED);
}

// What of the special addresses the kernel forwards to nobody and from nobody.
// The rest (0/8, 240/4) it does: as it is, were it handed up.
INLINE int is_never_forwarded4(__u32 address)
{
	__u8 first = address & 0xff;

	return !address || first == 127 || (first & 0xf0) == 224 || address == 0xffffffff;
}

// IPv4 where it is translated.
INLINE enum reason translate4(struct xdp_md *ctx, const struct link *from, __u32 len,
			      struct bpf_fib_lookup *way, const struct settings *set,
			      struct change *change, int is_watched)
{
	const __u8 *end = (const __u8 *)(long)ctx->data_end;
	const struct ip4 *ip = (const void *)(long)ctx->data + sizeof(struct eth);
	struct seen seen = {};
	const __u64 *until;
	enum reason reason;
	__u32 first = 0;
	int works = 0;

	reason = look4(ip, end, len - sizeof(struct eth), &seen, from->flags & SOFT);
	if (!seen.is_sound)
		return reason;
	if ((const __u8 *)(ip + 1) > end)
		return MALFORMED;
	if (is_never_forwarded4(ip->from) || is_never_forwarded4(ip->to))
		return SPECIAL_ADDRESS;
	if (reason == UNFINISHED)
		change->notes |= NOTE_UNFINISHED;
	if (is_watched && from->flags & RECEIVE4)
		works = WATCHED;
	until = map_lookup(answering(), &first);
	if (until && coarse_ns() < *until)
		works |= ANSWERS;
	if (from->flags & OUTSIDE)
		return translate_in(ctx, from, len, way, set, change, ip, &seen, reason, works);
	return translate_out(ctx, from, len, way, set, change, ip, &seen, reason, works);
}

INLINE __u16 changed(__u16 sum, __u16 delta)
{
	return ~fold((__u16)~sum + (__u32)delta);
}

// Gives a packet the flow's other end. Whether it could be.
INLINE int apply(struct xdp_md *ctx, const struct change *change)
{
	const struct flow *flow = change->flow;
	__u8 *end = (void *)(long)ctx->data_end;
	struct ip4 *ip = (void *)(long)ctx->data + sizeof(struct eth);
	__u8 *at = (void *)(ip + 1);
	__u16 *port = (void *)(at + (change->comes_in ? 2 : 0));

	if (at + 18 > end) {
		if (change->is_tcp || at + 8 > end)
			return 0;
	}
	if (change->comes_in)
		ip->to = flow->address;
	else
		ip->from = flow->address;
	ip->sum = changed(ip->sum, flow->ip_delta);
	*port = flow->port;
	if (change->is_tcp) {
		__u16 *sum = (void *)(at + 16);

		if ((__u8 *)(sum + 1) > end)
			return 0;
		*sum = changed(*sum, flow->upper_delta);
	} else {
		__u16 *sum = (void *)(at + 6);

		if (*sum) {
			__u16 now = changed(*sum, flow->upper_delta);

			*sum = now ? now : 0xffff;
		}
	}
	return 1;
}

// Hands a packet to the engine: what it is told stands in the source.
INLINE int hand(struct xdp_md *ctx, const struct settings *set, const struct change *change,
		int comes_in)
{
	struct eth *eth = (void *)(long)ctx->data;

	if ((void *)(eth + 1) > (void *)(long)ctx->data_end)
		return XDP_DROP;
	eth->from[0] = 0x02;
	eth->from[1] = 0x46;
	eth->from[2] = 0x50;
	eth->from[3] = change->notes;
	eth->from[4] = 0;
	eth->from[5] = 0;
	return redirect_map(ports(), set->engine[comes_in], XDP_DROP);
}

// ---- What is done ----------------------------------------------------------

// Makes it the next hop's. All is decided.
INLINE int rewrite(struct xdp_md *ctx, const struct bpf_fib_lookup *way, int is_ip4)
{
	void *end = (void *)(long)ctx->data_end;
	struct eth *eth = (void *)(long)ctx->data;

	if (is_ip4) {
		struct ip4 *ip = (void *)(eth + 1);
		__u32 sum;

		if ((void *)(ip + 1) > end)
			return 0;
		// One less, by difference: what was wrong stays wrong.
		sum = ip->sum;
		sum += htons(0x0100);
		ip->sum = sum + (sum >= 0xffff);
		ip->ttl--;
	} else {
		struct ip6 *ip = (void *)(eth + 1);

		if ((void *)(ip + 1) > end)
			return 0;
		ip->hops--;
	}
	__builtin_memcpy(eth->to, way->dmac, 6);
	__builtin_memcpy(eth->from, way->smac, 6);
	return 1;
}

INLINE enum reason decide(struct xdp_md *ctx, const struct link *from, __u32 len,
			  struct bpf_fib_lookup *way, const struct settings *set,
			  struct change *change)
{
	const struct eth *eth = (const void *)(long)ctx->data;
	const __u16 *to = (const void *)eth;
	const __u16 *mac = (const void *)from->mac;
	int is_watched;

	if ((void *)(eth + 1) > (void *)(long)ctx->data_end)
		return MALFORMED;
	if (eth->type == htons(0x8100) || eth->type == htons(0x88a8))
		return VLAN;
	if (eth->type != htons(0x0800) && eth->type != htons(0x86dd))
		return NOT_IP;
	if (to[0] != mac[0] || to[1] != mac[1] || to[2] != mac[2])
		return OTHER_STATION;
	if (has_tag(ctx))
		return VLAN;
	is_watched = coarse_ns() < set->until;
	if (!is_watched && !(set->translation & TRANSLATE))
		return UNWATCHED;
	// A second look: the compiler must not keep pointers over the call.
	eth = (const void *)(long)ctx->data;
	if ((void *)(eth + 1) > (void *)(long)ctx->data_end)
		return MALFORMED;
	if (eth->type == htons(0x0800) && set->translation & TRANSLATE)
		return translate4(ctx, from, len, way, set, change, is_watched);
	if (!is_watched)
		return UNWATCHED;
	if (eth->type == htons(0x0800))
		return forward4(ctx, from, len, way, set->most4);
	return forward6(ctx, from, len, way, set->most6);
}

__attribute__((section("xdp"), used)) int forward(struct xdp_md *ctx)
{
	__u32 index = ctx->ingress_ifindex, first = 0;
	const struct link *from = map_lookup(links(), &index);
	const struct settings *set = map_lookup(settings(), &first);
	struct bpf_fib_lookup way = {};
	struct change change = {};
	enum reason reason;
	struct count *count;
	__u32 len, place;

	if (!from || !set)
		return XDP_PASS;
	len = buff_len(ctx);
	reason = decide(ctx, from, len, &way, set, &change);
	if (reason == ENGINE && len > ctx->data_end - ctx->data)
		reason = TOO_LONG;
	if (reason == FORWARDED || reason == TRANSLATED) {
		const __u16 *type = (const void *)(long)ctx->data + 12;

		if ((void *)(type + 1) > (void *)(long)ctx->data_end ||
		    (reason == TRANSLATED && !apply(ctx, &change)) ||
		    !rewrite(ctx, &way, *type == htons(0x0800)))
			reason = reason == TRANSLATED ? CLOSED : FAILED;
	}
	place = from->slot * REASONS + reason;
	count = map_lookup(counters(), &place);
	if (count) {
		count->packets++;
		count->bytes += len;
	}
	switch (reason) {
	case FORWARDED:
	case TRANSLATED:
		if (!change.is_fresh)
			note(&way);
		return redirect_map(ports(), way.ifindex, XDP_DROP);
	case ENGINE:
		return hand(ctx, set, &change, from->flags & OUTSIDE ? 1 : 0);
	case CLOSED:
	case TOO_LONG:
	case BAD_SOURCE:
		return XDP_DROP;
	default:
		return XDP_PASS;
	}
}
