. /mnt/job/guest.sh
# The kernel does not find it by itself, as its modules are not where it looks.
modprobe -d /run/kernel nfs_layout_nfsv41_files
mount_export
cd /mnt/nfs
: > /mnt/job/begun
head -c 4200000 /dev/urandom > /mnt/job/whole
cp /mnt/job/whole whole
sync
echo 3 > /proc/sys/vm/drop_caches
cmp /mnt/job/whole whole
cp /proc/self/mountstats /mnt/job/mountstats
# The client counts calls to data servers as calls of the mount, so the server itself is asked.
fetch="import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())"
/usr/bin/python3 -c "$fetch" "http://$SERVER:9049/metrics" > /mnt/job/metrics
# Linux writes a small file by one stable write.
head -c 4096 /dev/urandom > /mnt/job/small
cp /mnt/job/small small
sync
echo 3 > /proc/sys/vm/drop_caches
cmp /mnt/job/small small
rm small
cd /
umount /mnt/nfs
# A client without parallel NFS sees the same bytes through the metadata server.
OPTIONS=vers=3,proto=tcp,port=2049,hard,nolock,mountport=2049,mountproto=tcp
mount_export
cmp /mnt/job/whole /mnt/nfs/whole
umount /mnt/nfs
