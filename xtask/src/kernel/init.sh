#!/bin/sh
# The first program of a guest: mounts, modules, network, clock; then the command; then power off.
# The root file system is the host's, read-only. `comity_job=FOLDER` on the kernel's command line
# names the folder of this guest, which holds `env` and `command` and takes `out`, `err` and `rc`.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LC_ALL=C
mount -t proc proc /proc
mount -t sysfs sys /sys
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs shm /dev/shm
job=$(sed 's/.*comity_job=\([^ ]*\).*/\1/' /proc/cmdline)
for folder in /run /mnt /tmp /var/tmp /var/lib/nfs; do mount -t tmpfs tmpfs "$folder"; done
chmod 1777 /tmp /var/tmp
mkdir -p /mnt/nfs /mnt/job /mnt/input /mnt/tools /mnt/system
mount -t hostfs none /mnt/job -o "$job"
. /mnt/job/env
mount -t hostfs none /mnt/input -o "$INPUT"
mount -t hostfs none /mnt/tools -o "$TOOLS" 2> /dev/null # only some tests have tools
# Programs and libraries that came with a newer kernel.
[ -z "$SYSTEM" ] || mount -t hostfs none /mnt/system -o "$SYSTEM"

# Modules of this kernel, in a folder of their own: the host need not have /lib/modules.
release=$(uname -r)
mkdir -p /run/kernel/lib/modules/"$release"
mount -t hostfs none /run/kernel/lib/modules/"$release" -o "$MODULES/$release"
modprobe -d /run/kernel nfsv3
modprobe -d /run/kernel nfsv4

ip link set lo up
ip addr add "$ADDRESS/24" dev vec0
ip link set vec0 up
# NFSv4 takes clients of one name for one.
hostname "guest-$NUMBER"
# No name service here: a look-up would wait for it to time out.
{
    echo "127.0.0.1 localhost"
    echo "$SERVER server"
    for number in 1 2 3; do echo "10.77.0.$((number + 10)) guest-$number"; done
} > /run/hosts
: > /run/resolv.conf
mount --bind /run/hosts /etc/hosts
mount --bind /run/resolv.conf /etc/resolv.conf
# Users and groups of people have no names here, whatever accounts the host has: once a server has
# refused an owner, the client sends the name of each id that has one, and servers know other names.
for accounts in passwd group; do
    awk -F: '$3 < 1000 || $3 > 60000' "/etc/$accounts" > "/run/$accounts"
    mount --bind "/run/$accounts" "/etc/$accounts"
done
# The host's clock, to within a second: the time of a file it has just made.
: > /mnt/job/now
date -s "@$(stat -c %.Y /mnt/job/now)" > /dev/null

[ -z "$HANDSHAKE_AS" ] || (. /mnt/job/guest.sh && handshake_as "$HANDSHAKE_AS")
cd /tmp
if [ "$TERMINAL" = 1 ]; then
    setsid -c sh /mnt/job/command < /dev/console > /dev/console 2>&1
else
    sh /mnt/job/command < /dev/null > /mnt/job/out 2> /mnt/job/err
fi
rc=$?
sync
echo $rc > /mnt/job/rc.new
mv /mnt/job/rc.new /mnt/job/rc
echo o > /proc/sysrq-trigger
sleep 5
