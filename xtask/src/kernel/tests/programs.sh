. /mnt/job/guest.sh
mkdir /mnt/three
: > /mnt/job/begun
case $NUMBER in
    1) /usr/bin/python3 /mnt/input/programs.py ;;
    *) /usr/bin/python3 /mnt/input/hands.py ;;
esac
