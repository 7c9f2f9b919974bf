. /mnt/job/guest.sh
mount_export
: > /mnt/job/begun
"$PROGRAM" bench run all /mnt/nfs --quick --rounds 1 \
    --only nfsstone,lsr,postmark,andrew --output /mnt/job/result \
    --reset 'umount /mnt/nfs && mount -t nfs -o "$OPTIONS" "$SERVER:$EXPORT" /mnt/nfs'
umount /mnt/nfs
