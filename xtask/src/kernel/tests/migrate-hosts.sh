. /mnt/job/guest.sh
mount_with_locks
: > /mnt/job/begun
case $NUMBER in
    1) /usr/bin/python3 /mnt/input/migrate_hosts.py ;;
    *) /usr/bin/python3 /mnt/input/hands.py ;;
esac
cd /
umount /mnt/nfs
