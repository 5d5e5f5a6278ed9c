// Package testbed runs the Subnet Manager against a simulated fabric in virtual time. It does in one goroutine, one input
// after the other, what package driver does with goroutines and a clock.
//
// A [Stage] has a sim.Fabric, and a sm.Core at one of its nodes. If keys of classes are configured, it also has the
// keymgr.Manager, and it has the store of the facts that these saved. [Stage.Run] lets time pass, [Stage.Until] runs until
// a condition holds, [Stage.Settle] until there is nothing left to do. An hour takes milliseconds if nothing happens in it.
// With the same netlist, options, seed and calls a stage does the same, to the packet.
//
// Like the driver, a stage uses random transaction ids. It accepts only answers that have the id, the attribute and the
// modifier of a pending request, so forged answers fail or succeed as with the real program. Saved facts are durable before
// anything is sent; [Stage.Crash] loses all other state.
package testbed
