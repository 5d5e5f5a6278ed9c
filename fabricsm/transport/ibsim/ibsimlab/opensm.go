package ibsimlab

import "bytes"

// CameUp reports whether the log of OpenSM says that the subnet is up, without an error before OpenSM began to exit.
// OpenSM logs an error for each request that is out when it exits.
func CameUp(log []byte) bool {
	before, _, _ := bytes.Cut(log, []byte("Exiting SM"))
	return bytes.Contains(before, []byte("SUBNET UP")) && !bytes.Contains(before, []byte("ERR "))
}
