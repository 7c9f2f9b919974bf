. /mnt/job/guest.sh
mount_with_locks
mkdir /mnt/four
mount -t nfs -o "vers=4.1,proto=tcp,hard$SECURITY" "$SERVER:$EXPORT" /mnt/four
: > /mnt/job/begun
case $NUMBER in
    1) /usr/bin/python3 /mnt/input/hosts.py ;;
    *) /usr/bin/python3 /mnt/input/hands.py ;;
esac
cd /
umount /mnt/nfs /mnt/four
