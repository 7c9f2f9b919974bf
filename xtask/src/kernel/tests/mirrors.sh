. /mnt/job/guest.sh
# The kernel does not find them by itself, as its modules are not where it looks.
modprobe -d /run/kernel nfsv3
modprobe -d /run/kernel nfs_layout_flexfiles
mount_export
cd /mnt/nfs
: > /mnt/job/begun
status() {
    ask 'admin $COMITY placement status --json --state-dir $STATE'
}
read_again() {
    sync
    echo 3 > /proc/sys/vm/drop_caches
    cmp "$1" "$2"
}
head -c 4200000 /dev/urandom > /mnt/job/whole
cp /mnt/job/whole whole
read_again /mnt/job/whole whole
cp /proc/self/mountstats /mnt/job/mountstats
# The client counts calls to data servers as calls of the mount, so the server itself is asked.
fetch="import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())"
/usr/bin/python3 -c "$fetch" "http://$SERVER:9049/metrics" > /mnt/job/metrics
status > /mnt/job/before
for host in a b; do
    [ "$(ask "on $host cat /srv/stripes/* | sha256sum")" = "$(sha256sum < /mnt/job/whole)" ]
done
ask 'on b pkill -9 "comity|ganesha"'
read_again /mnt/job/whole whole
# Writing goes on, to a file that has two mirrors and to a new one.
head -c 1000000 /dev/urandom > /mnt/job/more
cat /mnt/job/more >> whole
cat /mnt/job/whole /mnt/job/more > /mnt/job/longer
read_again /mnt/job/longer whole
head -c 300000 /dev/urandom > /mnt/job/later
cp /mnt/job/later later
read_again /mnt/job/later later
status > /mnt/job/after
# The other server comes back, and gets a whole copy of each file while the client has them open.
ask "on b sh /srv/start > /dev/null 2>&1 &"
exec 9>> whole
ask 'admin until $COMITY placement status --state-dir $STATE | grep " b  .* up "; do sleep 1; done
    $COMITY placement resilver --state-dir $STATE; $COMITY placement check --state-dir $STATE' \
    > /mnt/job/resilvered
cat /mnt/job/more >&9
exec 9>&-
cat /mnt/job/more >> /mnt/job/longer
read_again /mnt/job/longer whole
status > /mnt/job/end
cd /
umount /mnt/nfs
# A client without parallel NFS sees the same bytes through the metadata server.
OPTIONS=vers=3,proto=tcp,port=2049,hard,nolock,mountport=2049,mountproto=tcp
mount_export
cmp /mnt/job/longer /mnt/nfs/whole
cmp /mnt/job/later /mnt/nfs/later
umount /mnt/nfs
