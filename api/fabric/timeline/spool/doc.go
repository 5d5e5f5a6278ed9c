// Package spool keeps a timeline of the last time in files of a directory: one segment each, the oldest removed when they take more bytes, or
// are older, than they may.
//
// One goroutine writes; any number may read meanwhile, and wait for no write. A write that fails ends what is known: the writer begins again, and the
// time between is a [Gap]. Files are not flushed: what a crash of the machine takes is cut off, and checksums show it.
package spool
