// Package timeline records how a table of rows changes, and restores the table as it was at a time.
//
// A row has a key and [Fields] texts; what they mean is up to the caller. A [State] is the table at one time. A segment is a text of
// bytes that begins with a whole table and goes on with changes: an [Encoder] makes it, frame by frame, and a [Reader] replays it. Each frame has its
// length and a checksum (CRC-32C), so that a segment whose end was cut off, or overwritten, is good up to there. Rows and texts get numbers in
// a segment when they first occur, so that a change takes a few bytes.
//
// Nothing here has a clock or does I/O.
package timeline
