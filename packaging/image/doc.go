// Command image builds the provisioning image: one UEFI program with kernel, initrd and command line inside. In its initrd
// systemd runs portcullis-agent and the programs that it needs, and nothing else. It takes Debian's packages as apt has
// them, and picks files out of them by name. Beside the image it writes the list of its content (manifest) and the expected
// TPM registers (pcrs).
//
// The same packages, agent and site configuration result in the same bytes.
package main
