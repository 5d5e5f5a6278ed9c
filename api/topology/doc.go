// Package topology keeps the revisions of the declared topology, and takes them
// through their life: draft, validation, simulation against the fabric as it is seen,
// approval, activation, and the way back.
//
// What is wanted in force is one record of the store, the [Head]; it changes in the
// same transaction as the entries of the revisions and the audit log. The Subnet
// Manager follows: [Service.Run] gives it what the head says whenever that changes, and
// whoever starts one asks [Service.Wanted] first. So a service that is killed between
// any two steps comes back with what it had, or with what was asked for, and nothing in
// between.
//
// After an activation the fabric is watched: when it verifies fewer links than was
// foretold, by more than an allowance, or the Subnet Manager refuses, what was in force
// before is put into force again, and that is audited as any other step.
//
// The rules are those of fabricsm/topospec/history and simulate; this package adds
// store, people and time. It decides by what the Subnet Manager shows, and knows no
// packet.
package topology
