// Package leader lets one of several instances of the service lead in a role, as a record in the store that is bound to a
// lease.
//
// The leader has a Term. Its epoch is higher than that of every term before, and is written in the transaction that takes
// the lease. Term.Left returns for how long the lease surely holds: the time of a lease begins in the store, and never
// before the holder asked for it. So the holder counts from the moment at which it asked, by a clock that goes on while the
// machine is suspended, and subtracts a margin for clocks that do not run equally fast. An answer that is late, or that a
// paused process reads late, promises no more than that.
//
//	                 sent                 answered              sent+TTL-margin   sent+TTL
//	holder           |--------------------|------ may write ----|
//	store                  |------------------- record is there -------------------|
//
// The leader's writes into the store are fenced a second time: Term.Guard makes it a condition of a transaction that the
// record is still that of the term. So a leader whose lease has ended cannot write records, whatever its clock says.
//
// A term can lapse without being over: the store did not answer in time, as without quorum. Left is 0 then, and rises again
// if the store turns out to have kept the lease. When the store says that the lease has ended, the term is over
// permanently.
package leader
