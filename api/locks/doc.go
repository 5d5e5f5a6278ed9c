// Package locks decides on the locks of adapters: which key, which settings, and
// when one is opened for good. What it hands out goes to a host whose boot was
// proven, for adapters that inventory says are its own; what it believes is what
// evidence showed.
package locks
