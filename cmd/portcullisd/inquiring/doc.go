// Package inquiring sends the requests of diagnostic tools by a port of its own, with the M_Keys of devices, and returns what the tools may
// see. A tool never has a key. What may be asked is in package inquiry; who asks, for how long and why is on record in the audit log.
package inquiring
