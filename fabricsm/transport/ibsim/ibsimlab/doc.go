// Package ibsimlab runs a real ibsim on a netlist, talks to its console, and
// runs infiniband-diags against it, so that tests and demonstrations can be
// judged by third-party programs.
//
// Every lab has a scratch directory and a socket name of its own; several may
// run side by side.
package ibsimlab
