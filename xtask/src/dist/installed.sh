# What `tests.rs` does with the packages in $1/packages, inside mount, network
# and process namespaces of its own: a root that is this system's, but
# whatever is written goes elsewhere.
place=$1
cannot() { echo "$1" >&2; exit 77; }
fail() { echo "FAILED: $1" >&2; exit 1; }
[ "$(awk 'NR == 1 { print $3 }' /proc/self/uid_map)" -gt 65534 ] || cannot "only one user is ours"

mkdir "$place/layer" "$place/root"
mount -t tmpfs tmpfs "$place/layer" || cannot "no tmpfs may be mounted"
mkdir "$place/layer/upper" "$place/layer/work"
mount -t overlay overlay \
    -o "lowerdir=/,upperdir=$place/layer/upper,workdir=$place/layer/work" "$place/root" ||
    cannot "no overlay may be mounted"
root=$place/root
mount -t proc proc /proc
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/run"
mount --rbind /dev "$root/dev"
mkdir "$root/packages"
mount --bind "$place/packages" "$root/packages"
ip link set lo up
inside() { chroot "$root" "$@"; }
export DEBIAN_FRONTEND=noninteractive LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin

for account in passwd group; do
    ! grep -q '^fingerpost:' "$root/etc/$account" || cannot "there is a fingerpost already"
done
# What other daemons of this host have left is not ours.
rm -rf "$root/var/lib/fingerpost" "$root/etc/fingerpost" "$root/etc/fingerpost.toml"
accounts() { sort "$root/etc/passwd" "$root/etc/group"; }
accounts >"$place/accounts"

# Installed.
inside sh -c 'dpkg --install packages/*.deb' >"$place/log" 2>&1 ||
    { cat "$place/log" >&2; fail "dpkg --install"; }
[ "$(stat -c '%U:%G %a' "$root/usr/bin/fingerpost")" = "root:root 755" ] || fail "the program"
[ "$(inside stat -c '%U:%G %a' /etc/fingerpost/fingerpost.toml)" = "root:fingerpost 640" ] ||
    fail "the configuration is everybody's"
inside fingerpost check | grep -q '^/etc/fingerpost/fingerpost.toml: all right' || fail "check"
for page in fingerpost fingerpost-up fingerpost-replay fingerpost-route-get; do
    gzip -dc "$root/usr/share/man/man1/$page.1.gz" | grep -q '^\.TH' || fail "man page $page"
done
gzip -dc "$root/usr/share/man/man5/fingerpost.toml.5.gz" | grep -q '^\.TH' || fail "man page of the file"
bash -n "$root/usr/share/bash-completion/completions/fingerpost" || fail "completions"
grep -q '^#compdef fingerpost' "$root/usr/share/zsh/vendor-completions/_fingerpost" || fail "zsh"
grep -q '^complete .*--command fingerpost' \
    "$root/usr/share/fish/vendor_completions.d/fingerpost.fish" || fail "fish"
! inside dpkg --verify fingerpost libalias7 libalias-dev | grep . >&2 || fail "dpkg --verify"

# The service is sound, as far as can be said without a systemd running.
unit=/lib/systemd/system/fingerpost.service
if inside sh -c 'command -v systemd-analyze' >/dev/null; then
    inside systemd-analyze verify --man=no "$unit" || fail "systemd-analyze verify"
    inside systemd-analyze security --offline=true --threshold=20 --no-pager "$unit" \
        >"$place/security" || { tail -n 1 "$place/security" >&2; fail "too exposed"; }
    # The router's: root's user, without root's rights.
    router=/lib/systemd/system/fingerpost-router.service
    inside systemd-analyze verify --man=no "$router" || fail "systemd-analyze verify of the router"
    inside systemd-analyze security --offline=true --threshold=22 --no-pager "$router" \
        >"$place/security" || { tail -n 1 "$place/security" >&2; fail "the router is too exposed"; }
fi

# Started, with the rights that the unit gives and nothing else to write.
said() { sed -n "s/^$1=//p" "$root$unit"; }
user=$(said User)
capability=$(said AmbientCapabilities | tr 'A-Z' 'a-z' | sed 's/^cap_//')
[ "$(said CapabilityBoundingSet)" = "$(said AmbientCapabilities)" ] || fail "capabilities"
inside install -d -o "$user" -g "$user" -m 0755 "/run/$(said RuntimeDirectory)"
inside install -d -o "$user" -g "$user" -m 0700 "/var/lib/$(said StateDirectory)"
STATE_DIRECTORY=/var/lib/$(said StateDirectory) unshare --mount --propagation private \
    chroot "$root" sh -eu -c '
    mount --bind /var/lib/fingerpost /var/lib/fingerpost
    mount -o remount,bind,ro /
    capability=$1 user=$2
    shift 2
    exec setpriv --reuid="$user" --regid="$user" --clear-groups --no-new-privs \
        --inh-caps="-all,+$capability" --ambient-caps="-all,+$capability" \
        --bounding-set="-all,+$capability" -- "$@"
' sh "$capability" "$user" $(said ExecStart) >"$place/daemon" 2>&1 &
daemon=$!
# Tries something again and again for a minute.
until_so() {
    what=$1 tries=0
    shift
    until "$@" 2>/dev/null; do
        tries=$((tries + 1))
        [ $tries -lt 600 ] && kill -0 $daemon || { cat "$place/daemon" >&2; fail "$what"; }
        sleep 0.1
    done
}
lives() { inside fingerpost status | grep -q ' live,'; }
until_so "it does not start" lives
grep -q '^CapEff:.*0000000000001000$' /proc/$daemon/status || fail "capabilities of the daemon"
[ "$(stat -c %u /proc/$daemon)" = "$(inside id -u "$user")" ] || fail "user of the daemon"

# Asked, by anybody.
inside setpriv --reuid=65534 --regid=65534 --clear-groups fingerpost addr --json |
    grep -q '"local":"127.0.0.1"' || fail "a question"
ip link add probe type veth peer name probe1
sees() { inside fingerpost link probe | grep -q probe; }
until_so "a change is not seen" sees
inside stat -c '%U %a' /var/lib/fingerpost/snmp-engine.toml | grep -q "^$user 600" || fail "state"

# libalias: a program built with what is installed.
cat >"$root/tmp/probe.c" <<'END'
#include <sys/types.h>
#include <netinet/in.h>
#include <alias.h>
int main(void) { struct libalias *la = LibAliasInit(0); LibAliasUninit(la); return la == 0; }
END
inside cc -o /tmp/probe /tmp/probe.c -lalias || fail "a C program does not build"
inside /tmp/probe || fail "a C program does not run"

# Stopped, removed, purged.
kill -TERM $daemon
wait $daemon || { cat "$place/daemon" >&2; fail "the daemon's end"; }
[ -z "$(ls "$root/run/fingerpost")" ] || fail "sockets are left: $(ls "$root/run/fingerpost")"
rm -r "$root/tmp/probe" "$root/tmp/probe.c" "$root/run/fingerpost"
inside dpkg --remove fingerpost libalias-dev libalias7 >"$place/log" 2>&1 ||
    { cat "$place/log" >&2; fail "dpkg --remove"; }
[ ! -e "$root/usr/bin/fingerpost" ] || fail "the program stays"
[ -e "$root/etc/fingerpost/fingerpost.toml" ] || fail "the configuration went"
inside dpkg --purge fingerpost >"$place/log" 2>&1 || { cat "$place/log" >&2; fail "dpkg --purge"; }
accounts | cmp -s - "$place/accounts" || fail "accounts differ"
# What was written and is still there, but what dpkg and the accounts' tools
# always write.
for path in etc/fingerpost var/lib/fingerpost usr/share/doc/fingerpost; do
    [ ! -e "$root/$path" ] || fail "left behind: $path"
done
left=$(find "$place/layer/upper" ! -type d ! -type c | sed "s|^$place/layer/upper||" | grep -v -E \
    '^/(var/(lib/dpkg|log|cache/(ldconfig|man))/|etc/((passwd|group|shadow|gshadow|subuid|subgid)-?|ld\.so\.cache|\.pwd\.lock)$)' || true)
[ -z "$left" ] || fail "left behind: $left"
left=$(find "$place/layer/upper" -type d -name '*fingerpost*')
[ -z "$left" ] || fail "directories are left: $left"
echo "nothing is left behind"
