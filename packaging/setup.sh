#!/bin/sh
# Installs the system packages that a job needs on Debian or Ubuntu, each named
# with its reason, and only those that are missing. Run it as root or as
# somebody who may sudo:
#
#   packaging/setup.sh GROUP...     groups: demo fabric store tpm firmware selinux peers package image chaos attack boot vm race model web all
#
# Go itself is not installed: any Go from 1.21 on fetches the one go.mod names.
set -eu

# One line a package: groups, package, program or file that shows it is there on
# a system without dpkg, reason.
needs() {
  cat <<'EOF'
demo    swtpm            swtpm             the software TPM each simulated host has
demo    swtpm-tools      swtpm_setup       gives a software TPM its endorsement key
fabric  ibsim-utils      ibsim             the fabric simulator our Subnet Manager is proven against
fabric  libumad2sim0     -                 lets unchanged InfiniBand tools attach to ibsim
fabric  tshark           tshark            a second opinion on every field of our captures
fabric  infiniband-diags smpquery          third-party tools that prove what the fabric really holds
store   etcd-server      etcd              the store of a site's own, which the service is proven against
store   rsyslog          rsyslogd          the system log that anchors of the audit log are sent to
store   rsyslog-gnutls   -                 has rsyslog take events over TLS
store   prometheus-alertmanager prometheus-alertmanager takes events as alerts
store   python3-requests -                 calls our surface of UFM as scripts for it do
tpm     swtpm            swtpm             the software TPM each simulated host has
tpm     swtpm-tools      swtpm_setup       gives a software TPM its endorsement key
tpm     tpm2-tools       tpm2_quote        a second opinion on quotes and keys
tpm     openssl          openssl           a second opinion on certificates
tpm     libtss2-tcti-swtpm0 -              lets tpm2-tools speak to a software TPM
tpm     curl             curl              sends what tpm2-tools made to the service
tpm     softhsm2         softhsm2-util     a PKCS#11 token in software, which keeps a key that signs settings
tpm     opensc           pkcs11-tool       speaks to PKCS#11 tokens for us
firmware mstflint        mstflint          the vendor's tool, which reads the firmware images we make and judge
selinux secilc           secilc            compiles the SELinux labels that we write
selinux setools          seinfo            reads the compiled policy back
peers   opensm           opensm            the other Subnet Manager, to compare with and to meet
peers   ibutils          ibdmchk           a second opinion on our routes
peers   clustershell     nodeset           expands ranges of host names, a second opinion on ours
peers   gcc              gcc               compiles what stands between libumad2sim and the programs it serves in tests
peers   libc6-dev        -                 has that caller's headers, and the kernel's through linux-libc-dev
package dpkg             dpkg              installs and purges our deb packages in a test
package fakeroot         fakeroot          lets the test of packages run without root
package rpm              rpm               installs and erases our rpm packages in a test
package systemd          systemd-analyze   checks our units and how far they are locked down
package mandoc           mandoc            checks our manual pages
package prometheus       promtool          checks our alert rules, and evaluates them in tests
image   systemd-boot-efi -                 has the stub that starts a unified kernel image
image   zstd             zstd              compresses the image's initrd
image   kmod             depmod            lists what kernel modules need
image   cpio             cpio              reads back the archives that we write
image   binutils         objcopy           reads back the sections of images that we write
image   sbsigntool       sbsign            signs images, and reads them back
image   pesign           pesign            a second opinion on digests of images
image   systemd          systemd-analyze   has systemd-measure, a second opinion on what the stub measures
image   openssl          openssl           makes keys that sign images in tests
chaos   iproute2         ip                makes the network namespaces of instances, and cuts their network
attack  sslscan          sslscan           tries which versions and ciphers of TLS the service takes
attack  slowhttptest     slowhttptest      sends headers and bodies as slowly as it can
attack  nghttp2-client   h2load            sends requests of HTTP/2 as fast as it can
boot    systemd-container systemd-nspawn   boots a system that tries our units
vm      qemu-system-x86  qemu-system-x86_64 emulates the machines
vm      qemu-utils       qemu-img          makes the disks that machines write to
vm      ovmf             -                 the UEFI firmware that starts them, with keys for Secure Boot
vm      swtpm            swtpm             the software TPM each machine has
vm      swtpm-tools      swtpm_setup       gives a software TPM its endorsement key
vm      linux-headers-cloud-amd64 -        what the adapter's kernel module is built against; it names the kernel too
vm      gcc              gcc               compiles that module
vm      make             make              runs the kernel's build of it
vm      kmod             depmod            lists what kernel modules need
vm      mmdebstrap       mmdebstrap        makes the root file system of the machines from Debian's packages
vm      e2fsprogs        mkfs.ext4         writes it as a disk
vm      fdisk            sfdisk            partitions the disks that firmware starts from
vm      mtools           mcopy             writes their EFI system partition
vm      dosfstools       mkfs.fat          checks it
vm      sbsigntool       sbsign            signs what Secure Boot starts
vm      openssl          openssl           takes the passphrase off the key that signs that
vm      systemd-boot-efi -                 the stub of unified kernel images, and a boot loader
vm      binutils         objcopy           a second opinion on unified kernel images
vm      m4               m4                expands the reference policy's module of containers
vm      zstd             zstd              unpacks the source of that policy
vm      busybox-static   busybox           the shell of machines without root file system
race    gcc              gcc               Go's race detector links against C
race    libc6-dev        -                 Go's race detector links against C
model   spin             spin              checks the model of admission, leadership and keys
model   gcc              gcc               compiles the checker that spin makes of it
model   libc6-dev        -                 what the checker links against
web     chromium         chromium          the browser that tests look at the pages with
web     npm              npm               fetches axe-core, which judges whether each person can use them
EOF
}

say() { echo "setup: $*" >&2; }
die() { say "$@"; exit 1; }

usage="name what to set up for: demo, fabric, store, tpm, firmware, selinux, peers, package, image, chaos, attack, boot, vm, race, model, web or all"
[ $# -gt 0 ] || die "$usage"
for group; do
  case $group in
    demo | fabric | store | tpm | firmware | selinux | peers | package | image | chaos | attack | boot | vm | race | model | web | all) ;;
    *) die "no group is called \"$group\"; $usage" ;;
  esac
done

wanted() { # wanted GROUP GROUPS...
  group=$1; shift
  for w; do
    case $w in all | "$group") return 0 ;; esac
  done
  return 1
}

# umad2sim is a library without a program; these are the places it goes.
umad2sim() { ls /usr/lib*/umad2sim/libumad2sim.so* /usr/lib/*/umad2sim/libumad2sim.so* >/dev/null 2>&1; }

present() { # present PACKAGE PROGRAM
  # npm also comes with packages of Node.js that are not Debian's.
  if [ "$1" = npm ]; then
    command -v npm >/dev/null 2>&1
  elif command -v dpkg-query >/dev/null 2>&1; then
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
  elif [ "$1" = libumad2sim0 ]; then
    umad2sim
  else
    [ "$2" = - ] || PATH=$PATH:/usr/sbin:/sbin command -v "$2" >/dev/null 2>&1
  fi
}

missing=
while read -r group package program reason; do
  wanted "$group" "$@" || continue
  present "$package" "$program" && continue
  case "$missing " in *" $package "*) continue ;; esac
  say "needs $package: $reason"
  missing="$missing $package"
done <<EOF
$(needs)
EOF

# npm compares what it fetches with the checksum in the lock file.
fetch_axe() {
  dir=$(dirname "$0")/web
  [ -e "$dir/.fetched/node_modules/axe-core/axe.min.js" ] && cmp -s "$dir/package-lock.json" "$dir/.fetched/package-lock.json" && return
  say "fetching axe-core, which judges the pages in tests"
  mkdir -p "$dir/.fetched"
  cp "$dir/package.json" "$dir/package-lock.json" "$dir/.fetched/"
  npm ci --prefix "$dir/.fetched" --ignore-scripts --no-audit --no-fund --loglevel error >&2 ||
    die "npm could not fetch axe-core: the lines above say why"
}

[ -n "$missing" ] || {
  say "every system package for \"$*\" is there"
  ! wanted web "$@" || fetch_axe
  exit 0
}

command -v apt-get >/dev/null 2>&1 ||
  die "this is not Debian or Ubuntu: install what carries$missing with this system's package manager, then run this again"

root=
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null 2>&1 ||
    die "not root and there is no sudo: run as root: apt-get install$missing"
  root=sudo
fi

# A fresh OpenSM must not start and take over a fabric this machine may be
# cabled to, a fresh etcd must not take port 2379, and a fresh Prometheus not 9090.
fresh=
if [ -d /run/systemd/system ]; then
  case " $missing " in *" opensm "*) fresh="$fresh opensm.service" ;; esac
  case " $missing " in *" etcd-server "*) fresh="$fresh etcd.service" ;; esac
  case " $missing " in *" prometheus "*) fresh="$fresh prometheus.service" ;; esac
fi
# shellcheck disable=SC2086 # a list of units
[ -z "$fresh" ] || $root systemctl mask --quiet $fresh

say "installing$missing"
$root apt-get update -qq ||
  die "apt-get update did not work: check this machine's network and /etc/apt/sources.list, then run this again"
# shellcheck disable=SC2086 # a list of words, and sudo or nothing
$root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null ||
  die "apt-get could not install$missing: the lines above say why"

if [ -n "$fresh" ]; then
  # shellcheck disable=SC2086 # a list of units
  $root systemctl disable --quiet $fresh || true
  # shellcheck disable=SC2086 # a list of units
  $root systemctl unmask --quiet $fresh
fi
! wanted web "$@" || fetch_axe
say "done"
