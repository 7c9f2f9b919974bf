. /mnt/job/guest.sh
mount_export
cd /mnt/nfs
: > /mnt/job/begun
/usr/bin/python3 /mnt/input/two.py
cd /
umount /mnt/nfs
