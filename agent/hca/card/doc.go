// Package card is an adapter that does not exist: a model of what the firmware
// of one answers to registers and commands, so that the agent and third-party
// tools can be driven, and attacked, without hardware.
//
// A Card keeps settings as items with priorities, of the factory, in force and
// for the next boot; it takes signed files and firmware through the machine of
// MCC, and checks their signatures against its own table of keys; it locks by
// MLOCK, opens token sessions, resets, and fails in all the ways of Fault. It
// has no clock and no randomness: the same commands after the same Options give
// the same answers.
//
// It shows what the product does when an adapter behaves as published, or as
// badly as Traits let it. It shows nothing about real firmware: where the public
// sources are silent a Trait says which way the model goes, and
// docs/hardware-test-plan.md has the check that only hardware can make.
package card
