. /mnt/job/guest.sh
mkdir /tmp/second /tmp/second-state
echo "/tmp/second 10.77.0.0/24(rw,sync,no_root_squash,insecure)" > /tmp/second-exports
"$PROGRAM" serve --exports /tmp/second-exports --state-dir /tmp/second-state --no-register \
    2> /mnt/job/second.log &
second=$!
until grep -q serving /mnt/job/second.log; do sleep 0.1; done
echo "on the second server" > /tmp/second/text
mount_export
: > /mnt/job/begun
echo "on the first server" > /mnt/nfs/here
[ "$(cat /mnt/nfs/moved/text)" = "on the second server" ]
echo "written through the referral" > /mnt/nfs/moved/new
[ "$(cat /tmp/second/new)" = "written through the referral" ]
ls -l /mnt/nfs > /mnt/job/listing
grep -q moved /mnt/job/listing
grep -q "10.77.0.11:/tmp/second /mnt/nfs/moved nfs4" /proc/mounts
umount /mnt/nfs/moved
umount /mnt/nfs
kill "$second"
