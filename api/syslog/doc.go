// Package syslog writes messages of RFC 5424 and sends them: over TLS (RFC 5425), over TCP (RFC 6587 section 3.4.1), or to a socket of this
// machine, in the form that /dev/log takes.
//
// A message may repeat the word of a host. So nothing in it ends a line, a value or an element of the structured data, and its length is bounded.
package syslog
