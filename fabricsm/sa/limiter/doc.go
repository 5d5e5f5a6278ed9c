// Package limiter stands in front of all code that answers MADs: it decides which packets are looked at at all. A packet
// that it drops has cost only a look at a few numbers.
//
// # Lanes
//
// Each packet is in one lane, and lanes take nothing from one another:
//
//   - Ours: the expected answer to our own request. It is never limited. The caller
//     decides this; any sender can set the R bit of a method.
//   - Management: unsolicited SMPs: traps, and requests of other managers.
//   - Administration: class 0x03.
//   - Other: all else, including answers to no request.
//   - Managers: requests and commands of the subnet managers with which this one works.
//     A flood of other packets cannot make such a manager seem dead.
//
// # Nodes
//
// A node is an end port with all LIDs of its LMC. In each lane a node has a rate and a burst. All LIDs that no port has are
// one node together. A directed route has no LID. The caller finds the sending port from the ports that switches wrote on
// the way, and passes the LID of that port. Unknown senders are distinguished by the place at which the route enters the
// known part of the fabric. The sender chooses its source LID, and switches do not check it. So a sender that forges a LID
// spends the allowance of another node. Partitions and the place of the sender have to stop that.
//
// # Tenants
//
// A lane as a whole has a rate and a burst. While enough is left, only the rate of a node limits its packets. When it is
// scarce, tenants share it: time refills the allowances of all tenants that are not full at the same speed. So a tenant
// that asks for less than its share gets all of it, and the others get equal parts of the rest (max-min fairness). The
// number of ports of a tenant makes no difference. Nothing is queued: a packet passes or is dropped at once, and a client
// asks again, as after any loss.
//
// The burst is divided among tenants. So at most rate*t + burst packets pass in a time t.
//
// # Queries
//
// The cost of a request shows only while it is answered. Work assigns to each request a Budget of steps, such as records
// looked at, and to each node a number of steps a second.
package limiter
