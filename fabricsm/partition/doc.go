// Package partition decides which P_Keys every end port and the switch port in front of it hold.
//
// Every port is a limited member of the default partition, at index 0, and the Subnet Manager's ports are full members, so
// that hosts reach the SM and not each other. All further access is a [Member]: a port GUID, a P_Key and the switch port
// where that GUID must be seen. A GUID seen elsewhere gets nothing.
//
// A key keeps its index in a table while it stays, since queue pairs refer to P_Keys by index. A key that does not fit is
// left out and reported: a switch that cannot hold or enforce a key keeps the host out.
//
// All functions are pure. [PlanPort] plans one port at a cost that does not grow with the fabric; [Plan] plans all.
package partition
