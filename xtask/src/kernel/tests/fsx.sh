. /mnt/job/guest.sh
mount_export
cd /mnt/nfs
: > /mnt/job/begun
/mnt/tools/bin/fsx -q -S 1998 -N 100000 -f /mnt/input/fsx.toml -P /mnt/job file
cp file /mnt/job/file
remount_export
cmp /mnt/nfs/file /mnt/job/file
umount /mnt/nfs
