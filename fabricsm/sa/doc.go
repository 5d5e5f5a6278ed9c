// Package sa is subnet administration (IBTA volume 1, chapter 15): what hosts may ask of
// the Subnet Manager, and register with it. It is a pure state machine: an [Agent] is
// told of packets, views of the fabric and the time, and its owner does what an [Output]
// says.
//
// # The way of a request
//
//	limiter    is it looked at at all?
//	trust      header, SA_Key, source GID, enhanced trust model
//	book       who asks, and what may that port know of
//	path, record, group, service, inform, alias
//	           the answer: at once, as a table in segments (package rmpp), or when what
//	           was registered is durable
//
// What is refused for security is dropped without a word, counted exactly, and told of
// by the suppression sequence.
//
// # What it goes by
//
// Reading costs nothing of the Subnet Manager's time: answers come out of the newest
// view, which is immutable. A table keeps the view that it was begun with. Before the
// first settled view as master nobody is answered, and nobody when another is master.
//
// What hosts register is saved as facts before it is confirmed to them or told to the
// Subnet Manager, and restored at the next start.
package sa
