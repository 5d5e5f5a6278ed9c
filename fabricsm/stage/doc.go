// Package stage runs the Subnet Manager against a simulated fabric in virtual
// time: what package driver does with goroutines and a clock, it does in one
// goroutine, one input after the other.
//
// A [Stage] is a sim.Fabric, a sm.Core that sits at one of its nodes, with the
// keymgr.Manager beside it where keys of classes are configured, and the store of
// what these saved. [Stage.Run] lets time pass, [Stage.Until] until something
// holds, [Stage.Settle] until nothing is left to do; an hour takes milliseconds if
// nothing happens in it. With the same netlist, options, seed and calls a stage
// does the same, to the packet.
//
// As the driver does, a stage gives requests random transaction ids and believes
// only answers that have the id, the attribute and the modifier of a request that
// is out, so what forges answers fails or succeeds as it would against the real
// program. What is saved is durable before anything is sent; [Stage.Crash] loses
// all else.
package stage
