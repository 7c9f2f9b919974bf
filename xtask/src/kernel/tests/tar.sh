. /mnt/job/guest.sh
mount_export
: > /mnt/job/begun
attempt mkdir -p /mnt/nfs/heap
attempt tar -C /mnt/nfs/heap -xpf /mnt/input/heap.tar
sync
remount_export
fingerprint /mnt/nfs/heap > /mnt/job/fingerprint
umount /mnt/nfs
