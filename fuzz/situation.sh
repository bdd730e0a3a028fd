#!/bin/sh
# Makes one of everything in the network namespace it runs in, so that the
# messages about it can be captured (see README.md). A thing that the kernel
# lacks is named on standard error and left out.
set -u
try() { "$@" 2>/dev/null >/dev/null || echo "left out: $*" >&2; }

try sysctl -qw net.ipv4.conf.all.forwarding=1 net.ipv6.conf.all.forwarding=1
ip link set lo up

# Links.
ip link add v0 index 10 type veth peer name v1 index 11
ip link property add dev v0 altname uplink-to-the-first-switch altname second-name
ip link set v0 address 02:00:00:00:00:01 alias "an alias" txqueuelen 77 group 5 up
ip link set v1 up
ip link add v2 index 12 type veth peer name v3 index 13
ip link set v2 up
ip link set v3 up
ip link add br0 index 20 type bridge
ip link set br0 up
ip link add p0 index 21 type veth peer name p1 index 22
ip link set p0 master br0 up
ip link set p1 up
try bridge link set dev p0 cost 9
try bridge vlan add dev p0 vid 7
ip link add mv0 index 30 link v2 type macvlan mode bridge
ip link set mv0 up promisc on
ip link add vx0 index 40 type vxlan id 42 local 192.0.2.1 remote 192.0.2.9 dstport 4789 dev v2
ip link set vx0 up
try ip link add vx1 index 41 type vxlan external dstport 4790
try ip link set vx1 up
try ip link add vr0 index 50 type vrf table 1000
try ip link add du0 index 51 type dummy
try ip link add if0 index 52 type ifb
try ip link add gr0 index 53 type gre remote 192.0.2.7 local 192.0.2.1
try ip link add si0 index 54 type sit remote 192.0.2.7
try ip link add vl0 index 55 link v2 type vlan id 9
try ip link add bo0 index 56 type bond
try ip tuntap add tu0 mode tun
try ip link set tu0 up
ip link set v2 mtu 1400
ip link set v2 down
ip link set v2 name renamed
ip link set renamed name v2
ip link set v2 up

# Addresses.
ip addr add 192.0.2.1/24 broadcast 192.0.2.255 label v0:one dev v0
ip addr add 192.0.2.2/24 dev v0
ip addr add 10.9.0.1 peer 10.9.0.2/32 dev v0
ip addr add 198.51.100.1/24 dev v0 valid_lft 3000 preferred_lft 1000 metric 77
ip addr add 203.0.113.1/24 dev v2 noprefixroute scope link
try ip addr add 203.0.113.2/24 dev v2 proto 0x11
ip -6 addr add 2001:db8::1/64 dev v0 nodad
ip -6 addr add 2001:db8::5 peer 2001:db8::6/128 dev v0 nodad
ip -6 addr add 2001:db8:1::1/64 dev v2 valid_lft 5000 preferred_lft 4000 nodad
ip -6 addr add 2001:db8:2::1/64 dev v2 valid_lft forever preferred_lft 0 nodad
ip -6 addr add 2001:db8:3::1/64 dev v2 metric 33 noprefixroute home
ip -6 addr add 2001:db8:2::9/64 dev v0 mngtmpaddr

# Neighbours.
ip neigh add 192.0.2.50 lladdr 02:00:00:00:00:50 dev v0 nud permanent
ip neigh add 192.0.2.51 lladdr 02:00:00:00:00:51 dev v0 nud reachable
ip neigh add 192.0.2.52 dev v0 nud noarp lladdr 02:00:00:00:00:52 protocol bgp
ip neigh add 192.0.2.53 lladdr 02:00:00:00:00:53 dev v0 nud stale
try ip neigh add 192.0.2.54 dev v0 use
try ip neigh add 192.0.2.55 dev v0 managed
ip neigh add 2001:db8::50 lladdr 02:00:00:00:01:50 dev v0 nud permanent router
ip neigh add 2001:db8::51 lladdr 02:00:00:00:01:51 dev v0 extern_learn
ip neigh add proxy 192.0.2.60 dev v0
ip neigh add proxy 2001:db8::60 dev v0 protocol static
ip neigh del 192.0.2.53 dev v0
ping -c1 -W1 192.0.2.99 >/dev/null 2>&1

# Forwarding entries.
bridge fdb add 02:00:00:00:02:01 dev p0 master static
bridge fdb add 02:00:00:00:02:02 dev p0 master static sticky
bridge fdb add 02:00:00:00:02:03 dev br0 self local
bridge fdb append 02:00:00:00:02:04 dev vx0 dst 192.0.2.70
bridge fdb append 00:00:00:00:00:00 dev vx0 dst 192.0.2.71 port 9999 vni 77 via v2
try bridge fdb add 02:00:00:00:02:05 dev vx1 dst 192.0.2.72 src_vni 5 vni 6
try bridge fdb add 02:00:00:00:02:06 dev v2 self
bridge fdb del 02:00:00:00:02:02 dev p0 master

# Next hops.
ip nexthop add id 1 via 192.0.2.10 dev v0
ip nexthop add id 2 via 192.0.2.11 dev v0 protocol bgp
ip nexthop add id 3 via 2001:db8::10 dev v0
ip nexthop add id 4 blackhole
ip -6 nexthop add id 5 blackhole
ip nexthop add id 6 dev v2
ip nexthop add id 7 via 172.31.0.1 dev v2 onlink
ip nexthop add id 20 group 1,3/2,7
ip nexthop add id 21 group 1,10/2,255 protocol static
ip nexthop add id 22 group 1/2 type resilient buckets 32 idle_timer 60 unbalanced_timer 300
try ip nexthop add id 30 via 192.0.2.10 fdb
try ip nexthop add id 31 group 30 fdb
try bridge fdb add 02:00:00:00:02:07 dev vx0 nhid 31
try ip nexthop add id 8 encap ip id 5 dst 192.0.2.200 dev v2
ip nexthop add id 9 dev v0
ip nexthop del id 9

# Routes.
ip route add 10.1.0.0/16 via 192.0.2.10
ip route add default via 192.0.2.10 metric 5
ip route add 10.2.0.0/16 via 192.0.2.10 src 192.0.2.1 metric 100 proto bgp table 10000
ip route add 10.3.0.0/16 dev v0 scope link tos 0x10
ip route add 10.4.0.0/16 nexthop via 192.0.2.10 weight 3 nexthop dev v2 nexthop via inet6 fe80::1 dev v0 weight 256
ip route add 10.5.0.0/16 via inet6 2001:db8::10 dev v0
ip route add 10.6.0.0/16 via 172.31.0.1 dev v2 onlink
ip route add 10.7.0.0/16 via 192.0.2.10 mtu 1300 advmss lock 1200 rto_min 5 quickack 1 initcwnd 20
try ip route add 10.7.1.0/24 via 192.0.2.10 window 5 rtt 3s rttvar 2s ssthresh 7 cwnd 8 reordering 10 hoplimit 11 features ecn initrwnd 14 fastopen_no_cookie 1
try ip route add 10.8.0.0/16 via 192.0.2.10 congctl reno realms 3/4
try ip route add 10.8.1.0/24 nexthop via 192.0.2.10 realm 5 nexthop via 192.0.2.11 realm 6
ip route add blackhole 10.10.0.0/16
ip route add unreachable 10.11.0.0/16 metric 9
ip route add prohibit 10.12.0.0/16
ip route add throw 10.13.0.0/16 table 77
ip route add 10.14.0.0/16 nhid 1
ip route add 10.15.0.0/16 nhid 20
ip route add 10.16.0.0/16 nhid 22
ip route add 10.17.0.0/16 nhid 4
ip route append 10.1.0.0/16 via 192.0.2.11
ip route replace 10.3.0.0/16 dev v2 scope link tos 0x10
ip route del 10.10.0.0/16
try ip route add 10.20.0.0/16 encap ip id 5 dst 192.0.2.200 dev v2
try ip route add 10.21.0.0/16 encap seg6 mode encap segs 2001:db8::a,2001:db8::b dev v2
try ip route add 10.22.0.0/16 encap mpls 100/200 via 192.0.2.10
ip route add 255.255.255.255/32 dev v2
ip route add local 10.23.0.0/16 dev lo table local
ip -6 route add 2001:db8:10::/48 via 2001:db8::10
ip -6 route add default via fe80::1 dev v0 proto ra metric 1024 expires 600 pref high mtu 1280 hoplimit 64
ip -6 route add 2001:db8:11::/48 nexthop via 2001:db8::10 weight 5 nexthop via 2001:db8::11 dev v0
ip -6 route add blackhole 2001:db8:12::/48
ip -6 route add unreachable 2001:db8:13::/48
ip -6 route add prohibit 2001:db8:14::/48
try ip -6 route add throw 2001:db8:15::/48
ip -6 route add 2001:db8:16::/48 nhid 3
try ip -6 route add 2001:db8:17::/48 from 2001:db8:1::/64 via 2001:db8::10
try ip -6 route add 2001:db8:18::/48 encap seg6 mode encap segs 2001:db8::a,2001:db8::b dev v2
try ip -6 route add 2001:db8:19::1/128 encap seg6local action End.DX6 nh6 2001:db8::10 dev v2
try ip -6 route add 2001:db8:19::2/128 encap seg6local action End count dev v2
try ip -6 route add 2001:db8:19::3/128 encap seg6local action End flavors next-csid lblen 32 nflen 16 dev v2
try ip -6 route add 2001:db8:19::4/128 encap seg6local action End.B6.Encaps srh segs 2001:db8::7,2001:db8::8 dev v2
try ip -6 route add 2001:db8:19::5/128 encap seg6 mode inline segs 2001:db8::7,2001:db8::8 dev v2
try ip -6 route add 2001:db8:1a::/48 encap ip6 id 6 dst 2001:db8::99 dev v2
try ip -6 route add 2001:db8:1b::/48 encap ioam6 trace prealloc type 0x800000 ns 1 size 4 dev v2
ip -6 route add 2001:db8:1c::/48 via 2001:db8:ffff::1 dev v2 onlink
ip -6 route append 2001:db8:10::/48 via 2001:db8::11
try ip -6 route add local 2001:db8:1d::1/128 dev lo
try ip -6 route add anycast 2001:db8:1e::1/128 dev v0
try ip -f mpls route add 100 via inet 192.0.2.10
try ip mroute show
ip -6 route del 2001:db8:13::/48

# Rules.
ip rule add from 192.0.2.0/24 to 10.0.0.0/8 tos 0x10 lookup 100 priority 100
ip rule add iif v0 oif v2 fwmark 0x5/0xff table 10000 priority 101
ip rule add not from all fwmark 7 nop priority 102
ip rule add from 198.51.100.77 blackhole priority 116
ip rule add to 10.200.0.0/16 unreachable priority 103
ip rule add prohibit iif nosuchlink priority 104
ip rule add goto 100 priority 99
ip rule add goto 5000 priority 105
ip rule add nop priority 106
try ip rule add l3mdev priority 107
ip rule add uidrange 1000-2000 lookup main suppress_prefixlength 0 priority 108
ip rule add lookup main suppress_ifgroup 5 priority 109
ip rule add ipproto tcp sport 1000-2000 dport 443 lookup 100 priority 110 protocol bgp
try ip rule add tun_id 77 lookup 100 priority 111
try ip rule add from all realms 3/4 lookup 100 priority 112
try ip rule add dscp 10 lookup 100 priority 113
ip -6 rule add from 2001:db8::/32 lookup 100 priority 100
ip -6 rule add to 2001:db8:1::/48 iif lo lookup 1000000 priority 101
ip rule del priority 106
sleep 1
