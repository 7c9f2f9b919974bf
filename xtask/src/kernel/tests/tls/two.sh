. /mnt/job/guest.sh
SERVER=server TOP=$EXPORT
handshake_as "host-$NUMBER"
EXPORT=$TOP/$NUMBER
mount_export
: > /mnt/job/begun
head -c 65536 /dev/urandom > /mnt/job/data
dd if=/mnt/job/data of=/mnt/nfs/data conv=fsync 2> /dev/null
# The export of the other host is not there.
EXPORT=$TOP/$((3 - NUMBER))
mkdir /run/other
if mount -t nfs -o "$OPTIONS" "$SERVER:$EXPORT" /run/other; then exit 1; fi
umount /mnt/nfs
