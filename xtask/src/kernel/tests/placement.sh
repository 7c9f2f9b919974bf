. /mnt/job/guest.sh
# The kernel does not find it by itself, as its modules are not where it looks.
modprobe -d /run/kernel nfs_layout_nfsv41_files
mount_export
cd /mnt/nfs
: > /mnt/job/begun
if [ "$NUMBER" = 2 ]; then
    /usr/bin/python3 /mnt/input/placement_death.py /mnt/nfs/last /mnt/job/written &
    until [ -e /mnt/job/written ]; do sleep 0.05; done
    # The end of a command would write to the server, so the guest ends here.
    echo 0 > /mnt/job/rc.new
    mv /mnt/job/rc.new /mnt/job/rc
    echo o > /proc/sysrq-trigger
    sleep 60
fi
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
# The other client has died, and nobody has told the metadata server how long its file is.
for _ in $(seq 240); do
    [ "$(stat -c %s /mnt/nfs/last 2> /dev/null)" != 131072 ] || break
    sleep 0.5
done
yes last | tr -d '\n' | head -c 131072 | cmp - /mnt/nfs/last
rm /mnt/nfs/last
umount /mnt/nfs
