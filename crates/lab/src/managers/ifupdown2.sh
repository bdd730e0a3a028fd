# ifupdown2 from below $1, with the interfaces of $2 and its memory in $3: in
# a mount namespace of its own, so that nothing of the host's is touched. The
# rest is its command line.
set -e
root=$1 interfaces=$2 memory=$3 program=$4
shift 4
# It wants the /sys of the network namespace.
mount -t sysfs none /sys
mount -t tmpfs none /run
mkdir -p /run/network /run/etc /run/sbin /etc/network
cp -r "$root/etc/network/." /run/etc
cp "$interfaces" /run/etc/interfaces
mount --bind /run/etc /etc/network
# It remembers there what it brought up.
mount -t tmpfs none /var/tmp
mkdir -p /var/tmp/network
mount --bind "$memory" /var/tmp/network
# It is told by its name what it is to do.
ln -s "$root/usr/share/ifupdown2/__main__.py" "/run/sbin/$program"
exec python3 "/run/sbin/$program" "$@"
