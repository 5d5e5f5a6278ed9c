// Package isolation says whether tenants are isolated, by what devices were read to hold and who is declared to own them.
//
// An [Intent] is made of the records of the service: which host is at which switch port, to which tenant it belongs, and which
// switches there are. It returns the options by which package proof/reader reads the fabric, and [Report] makes of what was read a
// verdict for people and programs.
//
// The verdict is "isolated" only if package proof proves it of every pair, and every declared port was found. What was not
// read, and what is missing, never leads to it.
package isolation
