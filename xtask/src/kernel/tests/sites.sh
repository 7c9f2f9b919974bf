. /mnt/job/guest.sh
# By its name a client of NFSv4 is known: two of one name would take the place of each other.
hostname "site-$NUMBER"
mount_as() {
    mkdir -p "/mnt/$2"
    mount -t nfs -o "$OPTIONS$3" "$SERVER:$EXPORT/$1" "/mnt/$2"
}
mount_as guarded guarded ""
mount_as guarded brisk ",actimeo=1" # asks after a second whether what it knows is still so
mount_as cached cached ""
mount_as admin admin ""
: > /mnt/job/begun
export OPTIONS
/usr/bin/python3 /mnt/input/sites.py
umount /mnt/guarded /mnt/brisk /mnt/cached /mnt/admin
