// Package qos plans quality of service: which virtual lane each service level
// uses on a port, how the lanes of a port share its link, and which service
// level and limits a path has.
//
// [Options] are OpenSM's options qos and qos_*, with its defaults and its rule
// for ports that have fewer lanes than a table names, so that both make the
// same tables. Unlike there, a value that makes no sense is an error instead of
// being bent.
package qos
