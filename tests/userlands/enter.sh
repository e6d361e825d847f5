#!/usr/bin/env bash
# Runs a command in another root folder, in mounts of its own: unshare --mount enter.sh ROOT CACHE COMMAND…
#
# The mounts end with the last process in them. What this host uses to reach its registries (settings of apt, pip and
# npm, a proxy, certificates) is mounted or told, never copied: none of it stays in the folder.
set -euo pipefail

root=$1 cache=$2
shift 2

bind() { # bind SOURCE TARGET: a folder, or a file that is only to be read; what is not there is left out
	if [[ -d $1 ]]; then
		mkdir -p "$root$2"
		mount --bind "$1" "$root$2"
	elif [[ -f $1 ]]; then
		mkdir -p "$root${2%/*}"
		[[ -e $root$2 ]] || : >"$root$2"
		mount --bind "$1" "$root$2"
		mount -o remount,bind,ro "$root$2"
	fi
}

mount --bind "$root" "$root" # only a mount can become the root
for folder in proc sys dev; do
	mount --rbind "/$folder" "$root/$folder"
done
mount -t tmpfs tmpfs "$root/mnt"

# The archive's packages stay for the next time. They are checked as the host checks them, and written without fsync.
{
	apt-config dump | grep -E '^Acquire::(http|https|Retries|Check-|Max-ValidTime)' || true
	echo 'Acquire::https::CaInfo "/etc/ssl/host.crt";'
	echo 'Acquire::Languages "none"; APT::Keep-Downloaded-Packages "true"; APT::Sandbox::User "root";'
	echo 'DPkg::Options:: "--force-unsafe-io";'
} >"$root/mnt/apt.conf"
bind "$cache/archives" /var/cache/apt/archives
bind /etc/apt/auth.conf /etc/apt/auth.conf
for file in /etc/apt/auth.conf.d/*; do
	bind "$file" "$file"
done

rm -f "$root/etc/resolv.conf" # it may be a link
bind /etc/resolv.conf /etc/resolv.conf
bind /etc/hosts /etc/hosts
bind "${PIP_CERT:-${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}}" /etc/ssl/host.crt
bind "$cache/pip" /root/.cache/pip
bind /etc/pip.conf /etc/pip.conf
for file in .config/pip/pip.conf .pip/pip.conf .netrc .npmrc; do
	bind "$HOME/$file" "/root/$file"
done

# Only what the host's settings need: the rest of the environment would make this userland the host's.
environment=(HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8)
environment+=(APT_CONFIG=/mnt/apt.conf)
while IFS='=' read -r name _; do
	[[ ! $name =~ ^(PIP_|npm_config_|.*_proxy$|.*_PROXY$|REQUIRE_LIVE$|TERM$) ]] || environment+=("$name=${!name}")
done < <(env)
for name in PIP_CERT SSL_CERT_FILE REQUESTS_CA_BUNDLE CURL_CA_BUNDLE NODE_EXTRA_CA_CERTS; do
	environment+=("$name=/etc/ssl/host.crt")
done

# Not chroot: in one the kernel refuses new namespaces, which tests make.
cd "$root"
pivot_root . .
umount --lazy .
cd /
exec env -i "${environment[@]}" "$@"
