// Package perfread reads the counters of all ports of a fabric over a port: it carries the requests of a Manager of package
// perfmgr to the wire and the answers back, and counts the time.
//
// The port is to be an attachment of its own beside that of the Subnet Manager, so that no answer to one of them reaches the
// other, and neither waits for the other: the kernel and the simulators return an answer to the attachment that sent the request.
package perfread
