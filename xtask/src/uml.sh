#!/bin/sh
# First process of a machine of user-mode Linux: runs a line there. MODULES
# and LINE are filled in. Lines that begin with @ are heard outside. The files
# are the host's, not to be written; what a run leaves is in the machine's
# memory.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs tmpfs /run
mkdir -p /run/netns /run/tmp
export TMPDIR=/run/tmp HOME=/run/tmp
for module in bonding dummy ifb ipvlan macvlan macvtap veth vxlan geneve vrf \
    8021q tun tap bridge ip_gre ip6_gre mpls_router mpls_iptunnel; do
    modprobe -d MODULES "$module" || echo "@there is no $module"
done
ip link set lo up
echo "@kernel $(uname -r)"
LINE 2>&1 | while read -r line; do echo "@$line"; done
echo @end
echo o > /proc/sysrq-trigger
