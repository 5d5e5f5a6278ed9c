// Package topology keeps the revisions of the declared topology, and takes them through their life: draft, validation,
// simulation against the fabric as it is seen, approval, activation, and the way back.
//
// The topology wanted in force is one record of the store, the [Head]; it changes in the same transaction as the entries of
// the revisions and the audit log. The Subnet Manager follows: [Service.Run] passes it what the head says whenever that
// changes, and a caller that starts one asks [Service.Wanted] first. So a service that is killed between any two steps
// comes back with what it had, or with what was requested, and nothing in between.
//
// After an activation the fabric is watched. If it verifies fewer links than was predicted, by more than an allowance, or
// the Subnet Manager refuses, the revision in force before is put into force again. That is audited as any other step.
//
// The rules are those of fabricsm/topospec/history and simulate; this package adds store, people and time. It decides by
// what the Subnet Manager shows, and knows no packet.
package topology
