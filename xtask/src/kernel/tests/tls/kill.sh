. /mnt/job/guest.sh
SERVER=server
handshake_as host-1
mount_export
cd /mnt/nfs
: > /mnt/job/begun
/usr/bin/python3 /mnt/input/kill.py
cd /
umount /mnt/nfs
