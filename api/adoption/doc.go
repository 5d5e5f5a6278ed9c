// Package adoption decides about memberships that a fabric had before this service managed it. An operator lists them, and they
// stay as they are while the hosts are not proven yet.
//
// An adoption is a list of ports with their places and P_Keys, a reason, and a date by which the hosts must attest. It lets a
// port have what was listed, at the place that was listed, and nothing else. It ends for a port when its host is admitted, when the
// date has passed, or when an operator ends it.
//
// All functions are pure: they have no clock and no I/O. Package adoptions keeps adoptions in the store.
package adoption
