. /mnt/job/guest.sh
mount_export
: > /mnt/job/begun
/usr/bin/python3 /mnt/input/scarce.py
cd /
umount /mnt/nfs
