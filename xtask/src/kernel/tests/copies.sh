. /mnt/job/guest.sh
mount_export
cd /mnt/nfs
: > /mnt/job/begun
: > /mnt/job/passed
/usr/bin/python3 /mnt/input/copies.py
cd /
umount /mnt/nfs
