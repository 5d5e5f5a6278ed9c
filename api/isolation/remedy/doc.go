// Package remedy decides what is done about drift: about ports whose tables or settings differ from memberships. By the policy for
// its kind, drift is recorded as events, written again by the Subnet Manager, or ends the assignment of its host.
package remedy
