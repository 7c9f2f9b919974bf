. /mnt/job/guest.sh
# The kernel does not find it by itself, as its modules are not where it looks.
modprobe -d /run/kernel nfs_layout_nfsv41_files
mkdir -p /mnt/big /mnt/again
: > /mnt/job/begun
# The page shows the configuration and no command that writes it.
ask 'admin cp "$INPUT/comity.toml" "$CONFIG"'
. /mnt/input/tour.sh > /mnt/job/shown
umount /mnt/big
