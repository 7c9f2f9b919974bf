. /mnt/job/guest.sh
modprobe -d /run/kernel fuse
measure() {
    "$PROGRAM" bench run badros "$1" --quick --rounds 1 --calls-at "$SERVER:9049" \
        --output "/mnt/job/$2"
}
mount_export
mkdir /mnt/nfs/linux /mnt/nfs/comity
: > /mnt/job/begun
measure /mnt/nfs/linux linux
umount /mnt/nfs
"$PROGRAM" mount --state-dir /tmp/state -o dc_root=/tmp/cache "nfs://$SERVER$EXPORT" /mnt/nfs
measure /mnt/nfs/comity comity
"$PROGRAM" umount --state-dir /tmp/state /mnt/nfs
