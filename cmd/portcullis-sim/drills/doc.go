// Package drills plays the threats about which caller may ask the service for what, and about what hosts claim of
// themselves. It has the API with its credentials, admission over a store in memory, and the Subnet Manager of package
// stage under it, all in one goroutine and in virtual time. All returns these drills together with the drills of the fabric
// alone. Where a drill is about connections, API and attacker have sockets on this machine. Where instances lead one after the
// other, each waits in a goroutine for the end of its term.
//
// Where drills are about something else, hosts count as attested. Where they are about evidence, hosts have TPMs in
// software, and must prove what they are.
package drills
