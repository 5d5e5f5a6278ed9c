// Package fabricsm holds no code: it is the map of the subnet manager's
// packages below it.
//
//	ib/         values: GUID, LID, P_Key, M_Key, port number, link speed
//	mad/        management datagrams: header, directed route, every attribute
//	transport/  the port MADs travel through; ibsim attaches to a simulator
//	topo/       the observed fabric: dense ids, immutable snapshots
//	route/      routing engines, and the checker of what they made
//	mcast/      a tree for each multicast group
//	qos/        lanes of service levels, shares of lanes
//	partition/  which ports may communicate, as P_Key tables
//	topospec/   the declared fabric: which device belongs where
//	keys/       management keys: made, held, changed
//	vault/      keys at rest, and offline kits
//	sm/         the core: observed and wanted state, one Step at a time
//	driver/     runs a core: loop, timers, request window, store, transport
//	sim/        a simulated fabric
//	stage/      a core against that, in virtual time
//	drill/      attacks on the stage
//
// Imports point up this list only. ib imports nothing of ours, mad and topo
// import ib alone, planners (route to topospec) are pure functions of a topo
// snapshot, sm does no I/O and reads no clock, and sim never imports sm so that
// one can judge the other. Everything with a socket, a file or a goroutine is in
// transport, driver and the server of sim.
package fabricsm
