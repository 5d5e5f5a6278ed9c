// Package limiter stands in front of everything that answers MADs: it says which
// packets are looked at at all. What it drops has cost nothing but a look at a few
// numbers.
//
// # Lanes
//
// Each packet is in one lane, and lanes take nothing from one another:
//
//   - Ours: the answer to a request of ours that somebody waits for. It is never
//     limited. The caller knows; the R bit of a method is for anybody to set.
//   - Management: SMPs that nobody asked for: traps, questions of other managers.
//   - Administration: class 0x03.
//   - Other: all else, answers to nothing included.
//   - Managers: questions and commands of the subnet managers with which this one works.
//     No flood of others can have it taken for dead.
//
// # Nodes
//
// In each lane a node, that is an end port with all LIDs of its LMC, may send so
// much, a rate and a burst. LIDs that no port has are one node together. A directed route
// has no LID; the caller finds the port that sent it, by the ports that switches wrote on the way,
// and passes the LID of that. Unknown senders are distinguished by the place at which
// the route enters the known part of the fabric. A source LID is what the sender says: switches
// do not check it, so one who forges another's spends the other's allowance. That is
// for partitions and for the place of the sender to stop.
//
// # Tenants
//
// A lane as a whole has a rate and a burst. While there is enough of it nobody is
// held back but by the rate of its node. When it is scarce, tenants share it: time
// refills the allowances of all that are not full, each as fast as the other, so a
// tenant that asks for less than its share gets all that it asks for, and what is
// left goes to the others in equal parts (max-min fairness). How many ports a tenant
// has makes no difference. Nothing is queued: a packet passes or is dropped at once,
// and a client asks again, as it does after any loss.
//
// The burst is divided among tenants. So what passes in a time t is at most rate*t +
// burst, whatever is asked.
//
// # Queries
//
// What a question costs shows only while it is answered. Work gives each a Budget of
// steps, such as records looked at, and each node so many steps a second.
package limiter
