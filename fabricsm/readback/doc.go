// Package readback reads a fabric for package proof over a port: it carries the requests of a reader of package proof/reader
// to the wire and the answers back, and counts the time.
//
// It shares no state with a Subnet Manager. The port is to be an attachment of its own, so that no answer to one of them
// reaches the other: the kernel and the simulators return an answer to the attachment that sent the request. Transaction ids are
// drawn at random, because a forged answer needs one that is out.
package readback
