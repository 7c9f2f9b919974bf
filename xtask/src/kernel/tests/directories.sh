. /mnt/job/guest.sh
mount_export
mkdir /mnt/three
mount -t nfs -o "vers=3,nolock,proto=tcp,port=2049,mountport=2049,mountproto=tcp,hard$SECURITY" \
    "$SERVER:$EXPORT" /mnt/three
: > /mnt/job/begun
case $NUMBER in
    1) /usr/bin/python3 /mnt/input/directories.py ;;
    *) /usr/bin/python3 /mnt/input/hands.py ;;
esac
cd /
umount /mnt/nfs /mnt/three
