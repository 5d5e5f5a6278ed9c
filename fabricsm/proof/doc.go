// Package proof proves that tenants are isolated, from the tables that devices were read to hold, and shows a packet that
// passes where they are not.
//
// It is a pure function of its input. It has no clock, does no I/O, and shares no state with the Subnet Manager that wrote
// the tables.
//
// The statement, for each pair of tenants: no packet, with any P_Key or raw, unicast or multicast, passes from a port of
// one to a port of the other. Both hosts are controlled by the adversary, and choose every field of a packet. [Both] counts
// the checks of switches and adapters, [Switches] and [Adapters] only those of one kind. Ports that are undeclared, and
// spare ports that carry packets, are parties of their own: each tenant must be isolated from them.
//
// The core is in doc, model, wiring, keys, ends, pass, reach, ports and result, which refer to nothing in the other files, and in bitset.
// To check a verdict of [Prove], a reviewer need read no others. [Result.Again] proves a fabric that differs in P_Key tables (again),
// [Result.Explain] shows a packet that passes (query, explain), and the smallest change that closes its way (change).
//
// A value that was not read, or was read inconsistently, counts as letting everything pass. So isolation never follows from
// it. SMPs carry no P_Key and are not part of the statement; M_Keys protect devices from them.
package proof
