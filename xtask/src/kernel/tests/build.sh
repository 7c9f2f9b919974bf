. /mnt/job/guest.sh
mount_export
cd /mnt/nfs
: > /mnt/job/begun
attempt cp -rT /mnt/input/tree tree
cd tree
attempt sh ./configure
attempt make -s -j2
./program > /mnt/job/printed
remount_export
diff -r -x '*.o' -x 'config.*' -x program /mnt/input/tree /mnt/nfs/tree
/mnt/nfs/tree/program | cmp - /mnt/job/printed
umount /mnt/nfs
