. /mnt/job/guest.sh
mount_export
cd /mnt/nfs
: > /mnt/job/begun
operations=$(cat /mnt/input/operations)
/mnt/tools/bin/fsx -q -S 1998 -N "$operations" -f /mnt/input/fsx.toml -P /mnt/job file
cp file /mnt/job/file
remount_export
cmp /mnt/nfs/file /mnt/job/file
umount /mnt/nfs
