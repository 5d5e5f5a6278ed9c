// Package profile compares the security of an installation with three profiles: General, Bare-metal cloud and Secured
// bare-metal cloud. Each profile has the rules of the one before, and more.
//
// [Rules] is the table of the rules. [Check] applies those of one profile to [Facts], which the caller collects. A rule holds
// only if its fact was looked at and is as the rule wants. What was not looked at is [Unknown], with the reason, and never
// holds: a report holds only if each of its rules does.
//
// The package has no clock and no I/O. Ages are measured from Facts.At.
package profile
