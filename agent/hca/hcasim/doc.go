// Package hcasim is an adapter that does not exist: a model of how the firmware of an adapter answers registers and commands.
// With it the agent and third-party tools can be driven, and attacked, without hardware.
//
// A Card keeps settings as items with priorities, of the factory, in force and for the next boot. It takes signed files and
// firmware through the state machine of MCC, and checks their signatures against its own table of keys. It locks by MLOCK,
// opens token sessions, resets, and fails in all the ways of Fault. It has no clock and no randomness: the same commands
// after the same Options return the same answers.
//
// It shows how the product behaves when an adapter works as published, or as badly as Traits allow. It shows nothing about
// real firmware. Where the public sources are silent, a Trait says which way the model goes, and docs/reference/hardware-test-plan.md
// has the check that only hardware can make.
package hcasim
