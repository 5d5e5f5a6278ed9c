// Package boot starts a system of its own, with systemd as process 1, installs our packages in it and tries the statements
// of their units: that the programs run in their sandboxes, and how they end and are started again.
//
// The system is this machine's /usr below an empty root, which systemd-nspawn boots in some seconds; nothing of it stays.
// That takes root and a kernel that lets it make namespaces, so the tests have a build tag: "make boot" runs them, and CI
// does where packaging/bootable.sh finds that it can.
//
// Such a system lacks kernel modules, udev, and devices such as TPMs and adapters. A software TPM and a simulated fabric
// stand in for these. The service is here because the agent needs one. Its own life, its sandbox and its packages are tried
// in a virtual machine, by TestService of packaging/vm.
package boot
