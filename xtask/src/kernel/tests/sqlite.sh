. /mnt/job/guest.sh
mount_export
cd /mnt/nfs
: > /mnt/job/begun
: > /mnt/job/acknowledged
attempt /usr/bin/python3 /mnt/input/transactions.py
remount_export
cd /mnt/nfs
[ "$(sqlite3 data.db 'pragma integrity_check')" = ok ]
[ "$(sqlite3 data.db 'select count(distinct batch) from rows')" = 300 ]
cd /
umount /mnt/nfs
