. /mnt/job/guest.sh
ask "local cat ../server/state/tls.crt" > /mnt/input/tls/host-1.trusted
handshake_as host-1
mount_export
: > /mnt/job/begun
head -c 1048576 /dev/urandom > /mnt/job/data
dd if=/mnt/job/data of=/mnt/nfs/data bs=64k conv=fsync 2> /dev/null
remount_export
cmp /mnt/job/data /mnt/nfs/data
umount /mnt/nfs
