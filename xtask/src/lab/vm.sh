#!/bin/sh
# First process of the virtual machine of `cargo xtask lab vm`: makes, lists
# and deletes a link of every kind with fingerpost, with ip as the judge,
# then times VLANs. Lines that begin with @ are the result.
/bin/busybox --install -s /applets
export PATH=/bin:/applets
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmpfs /run
mkdir -p /run/netns /dev/net
modprobe tun

say() { echo "@$*"; }

say "kernel $(uname -r)"
say "ip $(ip -V)"

# step WHAT COMMAND…: must succeed; its words are shown if not.
step() {
    what=$1
    shift
    if said=$("$@" 2>&1); then
        return 0
    fi
    say "FAILED $what: $*: $(echo "$said" | tr '\n' ' ')"
    return 1
}

# kind 'WHAT IP MUST SAY' WORDS OF LINK ADD…
kind() {
    want=$1
    shift
    what=$*
    step "$what" fingerpost link add --name x1 "$@" || return
    shown=$(ip -d -o link show x1 2>&1 | tr -s ' \\' ' ')
    case $shown in
    *"$want"*) ;;
    *) say "FAILED $what: ip shows: $shown" ;;
    esac
    step "$what" fingerpost link show dev x1 --details || return
    case $said in
    *x1*) ;;
    *) say "FAILED $what: fingerpost shows: $said" ;;
    esac
    step "$what" fingerpost link delete x1 --cascade || return
    if ip link show x1 >/dev/null 2>&1; then
        say "FAILED $what: it is still there"
        ip link delete x1
        return
    fi
    say "ok $what"
}

ip link set lo up
ip link add em1 type veth peer name em2
ip link set em1 up
ip link set em2 up

kind 'vlan protocol 802.1Q id 5' --kind vlan --link em1 id 5
kind 'vlan protocol 802.1ad id 6' --kind vlan --link em1 protocol 802.1ad id 6
kind 'GVRP' --kind vlan --link em1 id 7 gvrp on
kind 'egress-qos-map { 1:2' --kind vlan --link em1 id 8 egress-qos-map 1:2
kind 'macvlan mode bridge' --kind macvlan --link em1 mode bridge
kind 'macvlan mode private' --kind macvlan --link em1 mode private
kind 'macvtap mode bridge' --kind macvtap --link em1 mode bridge
kind 'ipvlan mode l3 private' --kind ipvlan --link em1 mode l3 private
kind 'ipvtap mode l2' --kind ipvtap --link em1 mode l2
kind 'dummy' --kind dummy
kind 'ifb' --kind ifb
kind 'vrf table 10' --kind vrf table 10
kind 'bridge' --kind bridge vlan_filtering 1
kind 'vxlan id 42 remote 192.0.2.2' --kind vxlan id 42 remote 192.0.2.2 dstport 4789
kind 'vxlan id 43 remote 2001:db8::2' --kind vxlan id 43 remote 2001:db8::2 dstport 4790
kind 'geneve id 5 remote 192.0.2.9' --kind geneve id 5 remote 192.0.2.9
kind 'geneve external' --kind geneve external
kind 'gre remote 192.0.2.2 local 192.0.2.1' --kind gre remote 192.0.2.2 local 192.0.2.1 ttl 64 key 5
kind 'gretap remote 192.0.2.2' --kind gretap remote 192.0.2.2 local 192.0.2.1
kind 'gretap external' --kind gretap external
kind 'ip6gre remote 2001:db8::2' --kind ip6gre remote 2001:db8::2 local 2001:db8::1 hoplimit 5
kind 'ip6gretap remote 2001:db8::2' --kind ip6gretap remote 2001:db8::2 local 2001:db8::1
kind 'bond mode 802.3ad miimon 100' --kind bond mode 802.3ad miimon 100
kind 'bond mode active-backup' --kind bond mode active-backup
kind 'wireguard' --kind wireguard
kind 'tun type tun' --kind tun
kind 'tun type tap' --kind tap
kind 'veth' --kind veth --peer x2

# Hundredths of a second since the start.
now() { tr -d . </proc/uptime | cut -d' ' -f1; }

# timed WHAT COMMAND…
timed() {
    what=$1
    shift
    began=$(now)
    step "$what" "$@" || return
    say "time $what: $(($(now) - began)) hundredths of a second"
}

for n in 100 1000 4000; do
    timed "fingerpost makes $n VLANs" \
        fingerpost link add -n $n --kind vlan --link em1 --name 'v{}' id '{}'
    made=$(ip -o link show type vlan | wc -l)
    [ "$made" = "$n" ] || say "FAILED $n VLANs: there are $made"
    timed "fingerpost deletes $n VLANs" fingerpost link delete --kind vlan
    left=$(ip -o link show type vlan | wc -l)
    [ "$left" = 0 ] || say "FAILED $n VLANs: $left are left"
done
for n in 100 1000; do
    seq 1 $n | sed 's/.*/link add link em1 name v& type vlan id &/' >/run/add
    seq 1 $n | sed 's/.*/link delete v&/' >/run/delete
    timed "ip -batch makes $n VLANs" ip -batch /run/add
    timed "ip -batch deletes $n VLANs" ip -batch /run/delete
done

say end
poweroff -f
