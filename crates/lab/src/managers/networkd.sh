# systemd-networkd with the files of $1, until $2 links are configured, for
# $3 seconds at most: in a mount namespace of its own, without a bus.
set -e
# That it cannot be written tells it that there is no udev to wait for.
mount -t sysfs -o ro none /sys
mount -t tmpfs none /run
mkdir -p /run/systemd/network /run/systemd/netif/links /run/systemd/netif/leases
cp "$1"/* /run/systemd/network/
chown -R systemd-network:systemd-network /run/systemd
export SYSTEMD_LOG_TARGET=console SYSTEMD_LOG_LEVEL=warning
/lib/systemd/systemd-networkd &
networkd=$!
trap 'kill $networkd 2>/dev/null; wait $networkd || true' EXIT
end=$(($(date +%s) + $3))
while [ "$(grep -rls '^ADMIN_STATE=configured' /run/systemd/netif/links | wc -l)" -lt "$2" ]; do
    if [ "$(date +%s)" -ge "$end" ] || ! kill -0 $networkd 2>/dev/null; then
        grep -rHs STATE /run/systemd/netif/links >&2
        exit 1
    fi
    sleep 0.1
done
