// Package inquiry decides which requests of diagnostic tools are sent for them by a port that has the keys of devices, and what of the
// answers the tools see.
//
// A tool may read what the attributes of subnet management and of performance management show, and nothing else: no Set, no other class. It never sees a key: the M_Key
// is added after the request was taken, for the device at the end of its way, and each key in an answer is replaced by zeros.
//
// A request to a LID is sent by directed route, along the shortest way in the fabric as the Subnet Manager knows it. So it does not depend
// on forwarding tables, and the device at the end of it is known, whose key may be shown there.
//
// The package has no clock and sends nothing.
package inquiry
