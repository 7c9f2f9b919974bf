. /mnt/job/guest.sh
# mount.nfs would start them itself, somewhere on a disk that can be written to.
mkdir -p /run/rpcbind /run/sendsigs.omit.d /var/lib/nfs/sm /var/lib/nfs/sm.bak
rpcbind
rpc.statd --no-notify
mount -t nfs -o "vers=3,proto=tcp,mountproto=tcp,hard$SECURITY" "$SERVER:$EXPORT" /mnt/nfs
mkdir /mnt/four
mount -t nfs -o "vers=4.1,proto=tcp,hard$SECURITY" "$SERVER:$EXPORT" /mnt/four
: > /mnt/job/begun
case $NUMBER in
    1) /usr/bin/python3 /mnt/input/hosts.py ;;
    *) /usr/bin/python3 /mnt/input/hands.py ;;
esac
cd /
umount /mnt/nfs /mnt/four
