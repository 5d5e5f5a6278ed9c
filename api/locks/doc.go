// Package locks decides on the locks of adapters: which key, which settings, and when one is opened permanently. Its orders
// go to a host whose boot was proven, for adapters that inventory has for that host. It believes only what evidence showed.
package locks
