. /mnt/job/guest.sh
mount_export
: > /mnt/job/begun
case $NUMBER in
    1) /usr/bin/python3 /mnt/input/scarce.py ;;
    *) /usr/bin/python3 /mnt/input/hands.py ;;
esac
cd /
umount /mnt/nfs
