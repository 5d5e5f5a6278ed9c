// Package command has what the subcommands of portcullisd share: reading options, and telling a person what went wrong and
// what can be done about it.
package command

// DefaultConfigFile is the configuration of an installation from packages.
const DefaultConfigFile = "/etc/portcullis/portcullisd.yaml"
