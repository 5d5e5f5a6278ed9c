// Command image builds the provisioning image: one UEFI program with kernel, initrd
// and command line inside, in whose initrd systemd runs portcullis-agent and what
// that needs, and nothing else. It takes Debian's packages as apt has them, picks
// files out of them by name, and writes beside the image what went in (manifest)
// and what TPM registers it leads to (pcrs).
//
// The same packages, agent and site configuration give the same bytes.
package main
