#!/bin/sh
# Runs comity.service, as it is, under a real systemd: starts it, works on it, reloads it, kills it
# with SIGKILL, stops it. The systemd is the first process of namespaces of its own, in which /run,
# /tmp, /var, /srv, /etc/systemd and the folders of the program are empty ones; it ends with the
# script.
#
#   sudo packaging/prove-unit.sh target/release/comity
set -eu

die() { echo "prove-unit: $*" >&2; exit 1; }

boot() {
    mount --make-rprivate /
    mkdir -p /mnt
    mount -t tmpfs tmpfs /mnt
    cp "$1" /mnt/comity
    cp "$2" /mnt/comity.service
    for folder in /run /tmp /var/lib /srv /etc/systemd; do mount -t tmpfs tmpfs $folder; done
    mkdir -p /run/lock /run/systemd/system /srv/site
    chmod 777 /srv/site
    mount --bind /mnt/comity "$3"
    cp /mnt/comity.service /run/systemd/system/
    printf '/srv/site 127.0.0.1(rw,insecure)\n' > /run/exports
    mount --bind /run/exports /etc/exports
    printf '[Unit]\nDefaultDependencies=no\n' > /run/systemd/system/proof.target
    # Nothing of the machine's own is to start here.
    for unit in $(cd /lib/systemd/system && ls ./*.service); do
        ln -sf /dev/null "/run/systemd/system/${unit#./}"
    done
    cp --remove-destination /mnt/comity.service /run/systemd/system/
    mount -t proc proc /proc
    ip link set lo up
    exec env container=proof /lib/systemd/systemd --system --unit=proof.target --show-status=no
}

if [ "${1:-}" = boot ]; then shift; boot "$@"; fi

[ "$(id -u)" = 0 ] || die "takes root: namespaces and a systemd in them"
[ $# = 1 ] || die "name the program: packaging/prove-unit.sh target/release/comity"
program=$(realpath "$1")
folder=$(dirname "$(realpath "$0")")
[ -x /lib/systemd/systemd ] || die "there is no systemd here (Debian: apt install systemd)"
# The paths to mount on; they are removed afterwards if they were not there before.
made=
for place in /usr/bin/comity /etc/exports; do
    [ -e $place ] || { touch $place; made="$made $place"; }
done

group=/sys/fs/cgroup/systemd
[ -d $group ] || group=/sys/fs/cgroup
group=$group/comity-proof.$$
mkdir -p "$group"
sh -c "echo \$\$ > $group/cgroup.procs
    exec unshare --pid --fork --kill-child --mount --uts --ipc --net --cgroup \
    sh '$folder/prove-unit.sh' boot '$program' '$folder/comity.service' /usr/bin/comity" &
unshare=$!
finish() {
    kill -9 $unshare 2>/dev/null || true
    wait $unshare 2>/dev/null || true
    find "$group" -depth -type d -exec rmdir {} \; 2>/dev/null || true
    rm -f $made
}
trap finish EXIT
trap 'exit 1' INT TERM
within() { nsenter -t "$first" -p -m -n -- timeout 60 "$@"; }
first=
for _ in 1 2 3 4 5 6 7 8 9 10; do
    sleep 1
    first=$(pgrep -P $unshare || true)
    [ -n "$first" ] && within systemctl is-system-running >/dev/null 2>&1 && break
done

prove() {
    within systemctl start comity &&
    within systemctl is-active comity &&
    within comity bench run nfsstone nfs://127.0.0.1/srv/site --quick --rounds 1 \
        --output /run/result &&
    within systemctl reload comity &&
    within sh -c 'kill -9 "$(systemctl show comity -p MainPID --value)"; sleep 3' &&
    within systemctl is-active comity &&
    within systemctl stop comity &&
    [ "$(within systemctl show comity -p Result --value)" = success ] &&
    private
}
private() {
    open=$(within find /var/lib/comity -perm /077)
    [ -z "$open" ] || { echo "prove-unit: others may read $open" >&2; return 1; }
}
prove || { within systemctl status --no-pager comity || true; die "the step above failed"; }
echo "comity.service: started, served, reloaded, came back after SIGKILL, stopped"
