// Package drill plays threats out against the Subnet Manager. Each drill is one scenario on a simulated fabric that
// enforces, with tenants, victims and an attacker. Its result says what was tried, what stopped it, where it was reported,
// how long that took and what the victims felt. The drills themselves are in the packages threats and administration.
//
// # How to add a drill
//
// Drills stand in one file for each group of threats, in the order of their numbers; a file ends in a function that lists
// its drills, and threats.All joins those lists. A drill is a value:
//
//	{ID: "T1", Threat: "send data with another tenant's P_Key", Play: foreignPKey}
//
// Play gets a Scene, and does four things in this order:
//
//   - It sets the stage: [Scene.Site] builds a fabric of modern devices, starts the
//     manager, puts tenants into their partitions and settles.
//   - It starts victims ([Site.Victim]): data traffic that must not lose a packet
//     until the end of the drill, whatever happens in between.
//   - It attacks with the primitives of package sim, after [Site.Attack] has noted
//     the time. [Scene.Tried] says in words what the attacker does.
//   - It asserts both on the fabric and on the report: [Scene.Check] what passes and
//     what does not, [Site.Reported] that an event reports it (which measures the
//     time to detection), [Site.Isolated] that the attacker is cut off (which
//     measures the time to isolation). [Scene.Stopped] says in words what stopped it.
//
// A Check that does not hold makes the drill fail and lets it go on; [Scene.Must] ends it. Judge the fabric (sim.Fabric),
// not what the manager says of it. A drill that cannot be played yet has Needs in place of Play: it counts as not passed.
//
// # Controls
//
// A [Control] is what stops a threat. The list in controls.go names the drills each of them carries: those must pass with
// all controls, and fail without that one. A test plays all of them. Scene.Site switches a control off by configuring the
// manager or the devices, never by changing what a drill sees. A control that no configuration removes is an
// interface of the manager, and package weak has one without it, which no service links.
//
// Time is virtual and every random choice follows from the seed, so that a drill has the same result each time, to the
// packet.
package drill
