// Package sa is subnet administration (IBTA volume 1, chapter 15): the queries and registrations of hosts at the Subnet
// Manager. It is a pure state machine: an [Agent] receives packets, views of the fabric and the time, and its owner
// executes its [Output].
//
// # The way of a request
//
//	limiter    does the packet pass at all?
//	trust      header, SA_Key, source GID, enhanced trust model
//	book       the requester, and the ports that it may know
//	path, record, group, service, inform, alias
//	           the answer: at once, as a table in segments (package rmpp), or when the
//	           registration is durable
//
// A request that is refused for security is dropped without an answer, counted exactly, and reported by the suppression
// sequence.
//
// # Views and facts
//
// Queries take none of the Subnet Manager's time: answers come from the newest view, which is immutable. A table keeps the
// view that it began with. Before the first settled view as master, and while another manager is master, no request is
// answered.
//
// Registrations of hosts are saved as facts before they are confirmed to the host or passed to the Subnet Manager. They are
// restored at the next start.
package sa
