#!/usr/bin/env bash
# Installs the system packages of one group that are missing, by name: system-packages.sh build|lint|test|bench|userland|vm|vm-kernel|npm
#
# A name may have alternatives (a|b): any one that is installed will do. A name that begins with ? is left out, with a
# note, where the release has no such package. On a system without apt it only checks and says what is needed.
set -euo pipefail

case ${1:-} in
build) packages=(clang llvm 'libbpf1|libbpf1t64' libbpf-dev 'libelf1|libelf1t64' python3-venv gcc libc6-dev make) ;;
lint) packages=(clang-format) ;;
test)
	packages=('?chromium' fonts-dejavu-core 'linux-perf|linux-tools-generic' elfutils debuginfod gdb strace g++ rustc iproute2)
	packages+=(openmpi-bin libopenmpi-dev)
	packages+=('?redis-tools' '?graphviz' '?musl-tools' '?gcc-multilib' '?golang-go' '?python3-bpfcc')
	;;
bench)
	packages=(libbpf-tools bpftrace bpfcc-tools 'linux-perf|linux-tools-generic' gdb)
	packages+=('?musl-tools' '?gcc-multilib' '?golang-go' '?default-jdk-headless' '?nodejs')
	;;
vm) packages=(qemu-system-x86 busybox-static cpio kmod lz4 debian-archive-keyring 'virtiofsd|qemu-system-common' libbpf-tools systemtap) ;;
vm-kernel) packages=(flex bison bc libelf-dev libssl-dev dwarves) ;;
npm) packages=(npm) ;;
userland) packages=(debootstrap debian-archive-keyring) ;;
*)
	echo "usage: ${0##*/} build|lint|test|bench|userland|vm|vm-kernel|npm" >&2
	exit 2
	;;
esac

# Comparisons on captured text, not `… | grep -q`, which ends the writer by SIGPIPE and, with pipefail, itself as false.
is_installed() {
	[[ $(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

in_archive() {
	[[ $(apt-cache policy "$1") =~ Candidate:\ [0-9] ]]
}

any() { # any TEST NAME|NAME…: the first name that passes
	local test=$1 name names
	IFS='|' read -ra names <<<"$2"
	for name in "${names[@]}"; do
		"$test" "$name" && echo "$name" && return
	done
	return 1
}

without_apt() {
	local missing=() command
	if [[ $group == build ]]; then
		for command in clang llvm-strip gcc objcopy; do
			command -v "$command" >/dev/null || missing+=("$command")
		done
		[[ -e /usr/include/bpf/bpf_helpers.h ]] || missing+=('bpf/bpf_helpers.h (libbpf-devel)')
		[[ $libraries == *libbpf.so.1* ]] || missing+=('libbpf.so.1 (libbpf)')
		[[ $libraries == *libelf.so.1* ]] || missing+=('libelf.so.1 (elfutils-libelf)')
	else
		echo "system packages: no apt-get here; \`make $group\` wants what Debian calls: ${packages[*]}"
	fi
	if ((${#missing[@]})); then
		echo "system packages: missing: $(printf '%s, ' "${missing[@]}" | sed 's/, $//')" >&2
		echo "install them with this system's package manager, then run make again" >&2
		exit 1
	fi
	exit 0
}

not_in_archive() {
	echo "system packages: this release has no package ${1//|/ or }" >&2
	if [[ $1 == libbpf1* ]]; then
		echo "install libbpf 1.0 or newer (libbpf.so.1 and its headers) from its source, then run make again" >&2
	else
		echo "enable the component that has it (Ubuntu: universe), then run make again" >&2
	fi
	exit 1
}

# A libbpf that somebody built from source is as good as the package.
built_libbpf() {
	[[ $1 != libbpf-tools && $1 == libbpf* && $libraries == *libbpf.so.1* ]] || return 1
	[[ -e /usr/include/bpf/bpf_helpers.h || -e /usr/local/include/bpf/bpf_helpers.h ]]
}

group=$1
libraries=$(PATH=$PATH:/usr/sbin:/sbin ldconfig -p)
command -v apt-get >/dev/null || without_apt

missing=()
for package in "${packages[@]}"; do
	any is_installed "${package#\?}" >/dev/null || built_libbpf "$package" || missing+=("$package")
done
((${#missing[@]})) || exit 0

as_root=()
if ((EUID != 0)); then
	as_root=(sudo)
	if ! command -v sudo >/dev/null; then
		echo "system packages: missing: ${missing[*]}; installing them takes root, and there is no sudo" >&2
		echo "as root: apt-get install ${missing[*]//\?/}" >&2
		exit 1
	fi
fi

mkdir -p build
exec 9>build/.apt.lock # targets may run side by side
flock 9
"${as_root[@]}" apt-get update -q

chosen=()
for package in "${missing[@]}"; do
	if name=$(any in_archive "${package#\?}"); then
		chosen+=("$name")
	elif [[ $package == \?* ]]; then
		echo "system packages: this release has no package ${package#\?}: what needs it is left out"
	else
		not_in_archive "$package"
	fi
done
((${#chosen[@]})) || exit 0
echo "system packages: installing ${chosen[*]}"
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
	apt-get install -q -y --no-install-recommends -o DPkg::Lock::Timeout=300 "${chosen[@]}"
