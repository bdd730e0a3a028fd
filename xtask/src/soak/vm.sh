#!/bin/sh
# First process of the virtual machine of `cargo xtask soak --vm`: runs seeds
# there. WORDS are those of the command line. Lines that begin with @ are
# heard outside.
/bin/busybox --install -s /applets
export PATH=/bin:/applets
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
mkdir -p /run/netns /dev/net
modprobe tun
ip link set lo up
echo "@kernel $(uname -r)"
xtask soak --program /bin/fingerpost WORDS 2>&1 | while read -r line; do echo "@$line"; done
echo @end
poweroff -f
