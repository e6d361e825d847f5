#!/busybox sh
# The first process of a guest: mounts the host's files read-only below an overlay in memory, and becomes the job's shell.
/busybox mkdir -p /proc /sys /dev /host /memory /new
/busybox mount -t proc proc /proc
/busybox mount -t sysfs sys /sys
/busybox mount -t devtmpfs dev /dev
for module in /modules/*.ko; do
	[ -e "$module" ] && /busybox insmod "$module"
done
options=trans=virtio,version=9p2000.L,msize=524288
virtiofs=$(/busybox grep -o shares=virtiofs /proc/cmdline)
if [ -n "$virtiofs" ]; then
	/busybox mount -t virtiofs -o ro host /host
else
	/busybox mount -t 9p -o "$options,cache=loose,ro" host /host
fi
/busybox mount -t tmpfs memory /memory
/busybox mkdir /memory/upper /memory/work
/busybox mount -t overlay -o lowerdir=/host,upperdir=/memory/upper,workdir=/memory/work root /new
/busybox mount --move /proc /new/proc
/busybox mount --move /sys /new/sys
/busybox mount --move /dev /new/dev
/busybox mount -t tmpfs run /new/run
/busybox mkdir -p /new/run/share /new/dev/pts /new/dev/shm
/busybox mount -t devpts devpts /new/dev/pts
/busybox mount -t tmpfs shm /new/dev/shm
if [ -n "$virtiofs" ]; then
	/busybox mount -t virtiofs share /new/run/share
else
	/busybox mount -t 9p -o "$options" share /new/run/share
fi
exec /busybox switch_root /new /bin/sh /run/share/start
