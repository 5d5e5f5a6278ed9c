// Package ibsim speaks ibsim's socket protocol: Dial attaches to a node of a simulated fabric as the preload library of
// libibumad programs does, and Listen is the simulator's side of the same protocol.
//
// All sockets are Unix datagram sockets with abstract names, built from a base name (the environment variable
// IBSIM_SOCKNAME, "sim" by default):
//
//	BASE:ctl      simulator, control requests
//	BASE:outN     simulator, MADs of client number N, 0 to 9
//	BASE:ctlPID   client, its end of control
//	BASE:inPID    client, its end of MADs
//
// This protocol has no service level, P_Key, GRH or path bits, and no timeout. If the simulator is ibsim, there is no M_Key
// check either. ibsim returns an unanswered request at once, marked undelivered. It overwrites the upper 16 bits of the
// transaction identifier of every request, so replies are matched on the lower 32.
package ibsim
