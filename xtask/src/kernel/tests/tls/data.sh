. /mnt/job/guest.sh
SERVER=server
handshake_as "host-$NUMBER"
mount_export
: > /mnt/job/begun
# The kernel counts the connections that it encrypts.
grep -q '^TlsCurrTxSw[^0-9]*[1-9]' /proc/net/tls_stat
grep -q '^TlsCurrRxSw[^0-9]*[1-9]' /proc/net/tls_stat
head -c 16777216 /dev/urandom > /mnt/job/data
dd if=/mnt/job/data of=/mnt/nfs/data bs=1M conv=fsync 2> /dev/null
remount_export
cmp /mnt/job/data /mnt/nfs/data
umount /mnt/nfs
