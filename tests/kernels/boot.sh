# The first program of the virtual machine: file systems, the network of its own, then the tests.
mount -t proc proc /proc 2> /dev/null
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev 2> /dev/null
mkdir -p /dev/pts /dev/shm
mount -t devpts -o gid=5,mode=620,ptmxmode=666 devpts /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t tmpfs -o mode=1777 tmp /tmp
mount -t tmpfs -o mode=755 run /run
mount -t cgroup2 cgroup2 /sys/fs/cgroup
ln -sfn /proc/self/fd /dev/fd
for n in 0:stdin 1:stdout 2:stderr; do ln -sfn "/proc/self/fd/${n%%:*}" "/dev/${n#*:}"; done
chmod 755 / /var; chmod 1777 /var/tmp
export PATH=/usr/bin:/usr/sbin:/bin:/sbin HOME=/root LANG=C.UTF-8 TMPDIR=/tmp
/project/.venv/bin/python /project/tests/kernels/guest.py < /dev/null > /dev/console 2>&1
echo o > /proc/sysrq-trigger
sleep 100
