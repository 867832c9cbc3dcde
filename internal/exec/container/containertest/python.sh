# Makes a small root file system with Python from Debian's packages and writes
# it as a tar to stdout. Argument: an empty directory to work in.
set -eu
cd "$1"
apt-cache show python3 >/dev/null 2>&1 || apt-get update -q >&2
packages=$(apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances \
	python3 libpython3-stdlib | grep '^[a-z]' | grep -Ev '^(dpkg|debconf|perl|libperl|tar|install-info|libc-dev|python3-venv|mailcap|media-types|tzdata)' | sort -u)
mkdir packages root
(cd packages && apt-get download -q $packages >/dev/null)
for d in bin sbin lib lib64; do
	mkdir -p "root/usr/$d"
	ln -s "usr/$d" "root/$d"
done
for p in packages/*.deb; do
	dpkg-deb --fsys-tarfile "$p" | tar -x --keep-directory-symlink -C root --exclude='./usr/share/*' --exclude='./lib/systemd/*'
done
cp "$(command -v busybox)" root/usr/bin/busybox
for applet in $(root/usr/bin/busybox --list); do
	[ -e "root/usr/bin/$applet" ] || ln -s busybox "root/usr/bin/$applet"
done
# Bytecode beforehand: the root is read-only in containers.
if [ "$(id -u)" = 0 ]; then
	chroot root /usr/bin/python3 -I -S -m compileall -q -x '/(test|idlelib|lib2to3|distutils|ensurepip)/' /usr/lib/python3 /usr/lib/python3.* >/dev/null || true
fi
mkdir -p root/tmp root/proc root/sys root/dev root/etc root/root root/workspace
chmod 1777 root/tmp
echo 'root:x:0:0:root:/root:/bin/sh' >root/etc/passwd
echo 'root:x:0:' >root/etc/group
tar -c -C root --numeric-owner --owner=0 --group=0 .
